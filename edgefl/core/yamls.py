"""YAML 1.2 files with errors that name file, line and key."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

from ruamel.yaml import YAML

from edgefl.core.errors import Place, ScenarioError, UserError
from edgefl.core.nodes import MOST_BYTES, Node, compose, written

# The contexts of validation. Written by hand: quantities with units, and names that are looked up.
WRITTEN: Mapping[str, str] = {"by": "hand"}
# Dumped records: plain numbers are in base units.
RESOLVED: Mapping[str, str] = {"by": "a record"}
# Those of a run that is only read: names stay, and components that need torch are not loaded.
RECORDED: Mapping[str, str] = {"by": "a run"}


def by_hand(context: Any) -> bool:
    """Whether values that are validated in a context, or in none, were written by hand."""
    return context is None or context == WRITTEN


def text_of(path: Path, most_bytes: int | None = None) -> str:
    """A file's text.

    Raises:
        ScenarioError: the file cannot be read, is not UTF-8, or has more than so many bytes.
    """
    try:
        with path.open("rb") as file:
            content = file.read(-1 if most_bytes is None else most_bytes + 1)
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ScenarioError(f"cannot read {path.name}: it is not UTF-8 text", where=str(path)) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ScenarioError(f"cannot read {path.name}: {reason}", where=str(path)) from error
    if most_bytes is not None and len(content) > most_bytes:
        raise ScenarioError(f"{path.name} is larger than {most_bytes:,} bytes", where=str(path))
    return text.replace("\r\n", "\n").replace("\r", "\n")


@dataclass(eq=False)
class Document:
    """A YAML mapping that knows where its values were written.

    Attributes:
        file: the file's path, as messages print it.
        data: the mapping as plain data.
        context: how values are validated: ``WRITTEN``, ``RESOLVED`` or ``RECORDED``.
        root: the same values with their places; None if they were not read from YAML.
    """

    file: str
    data: dict[str, Any]
    context: Mapping[str, str] = field(default_factory=lambda: WRITTEN)
    root: Node | None = None

    @property
    def nodes(self) -> Node:
        """The values with their places."""
        return self.root or written(self.data, self.file)

    @classmethod
    def read(cls, path: Path) -> Document:
        """Reads a file.

        Raises:
            ScenarioError: the file cannot be read, or see ``parse``.
        """
        return cls.parse(text_of(path, MOST_BYTES), str(path))

    @classmethod
    def parse(cls, text: str, file: str, *, limited: bool = True) -> Document:
        """Parses text; ``file`` is for messages.

        Raises:
            ScenarioError: it is not a YAML mapping, repeats a key, or exceeds the limits of
                ``edgefl.core.nodes``, unless it is not ``limited``.
        """
        root = compose(text, file, limited=limited)
        if root.value is None:
            raise ScenarioError("the file is empty", where=file)
        if not isinstance(root.value, dict):
            raise ScenarioError("the file is not a mapping of keys to values", where=file)
        return cls.of(root, file)

    @classmethod
    def of(cls, root: Node, file: str) -> Document:
        """The document of a mapping that was composed."""
        return cls(file, root.plain, root=root)

    def place(self, path: Sequence[str | int]) -> Place:
        """The location of the value at ``path``, or of the nearest enclosing one that is written out."""
        dotted = ".".join(str(key) for key in path)
        node, file, line = self.root, self.file, 0
        for key in path:
            node = node.child(key) if node else None
            if node is None:
                break
            file, line = node.file, node.line
        # An option such as "--set seed=x" names its own key.
        return Place(file, line, "" if f" {dotted}=" in file else dotted)

    @contextmanager
    def placing(self) -> Iterator[None]:
        """Places errors that name a key alone, or nothing: at the key's line, or in the file.

        Raises:
            UserError: what the block raised, or that a number does not fit into 64 bits or into memory.
        """
        try:
            yield
        except UserError as error:
            for each in (error, *error.others):
                if not each.where or (each.where != self.file and _KEYS.fullmatch(each.where)):
                    each.where = str(self.place(each.where.split(".") if each.where else []))
            raise
        except (OverflowError, MemoryError) as error:
            room = "this machine's memory" if isinstance(error, MemoryError) else "64 bits"
            raise ScenarioError(
                f"what this asks for is too large: it does not fit into {room}",
                where=self.file,
                hint="look for a number of epochs, steps, clients or units that is too large",
            ) from error


# A key as code names it that has no document.
_KEYS = re.compile(r"[a-z_]+(\.[a-z_]+)*")


def item(value: Any, key: str | int) -> Any:
    """The value under a key or at an index; None if there is none."""
    try:
        return value[key]
    except (KeyError, IndexError, TypeError):
        return None


# Longer texts are written as literal blocks, line by line: the emitter takes seconds for a megabyte.
_LONG = 10_000
# What such a block has as it is.
_BLOCK = re.compile(r"[!-~][\n -~]*[!-~]")


def dump(value: Any) -> str:
    """Plain data as YAML text."""
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False
    mark, long, out = f"long-{uuid4().hex}-", list[str](), StringIO()
    marked = _marked(value, mark, long)
    yaml.dump(marked if long else value, out)

    def block(line: re.Match[str]) -> str:
        indent = "\n" + " " * (len(line["indent"]) + 2)
        return line["indent"] + line["key"] + "|-" + indent + long[int(line["place"])].replace("\n", indent)

    line = rf"(?m)^(?P<indent>[ -]*)(?P<key>.*){mark}(?P<place>\d+)$"
    return re.sub(line, block, out.getvalue()) if long else out.getvalue()


def _marked(value: Any, mark: str, long: list[str]) -> Any:
    """Plain data with a mark in place of each text that is taken out as long."""
    if isinstance(value, dict):
        return {key: _marked(inner, mark, long) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_marked(inner, mark, long) for inner in value]
    if not isinstance(value, str) or len(value) < _LONG or not _BLOCK.fullmatch(value):
        return value
    long.append(value)
    return f"{mark}{len(long) - 1}"


def in_line(value: Any) -> str:
    """Plain data as YAML in one line: "{shape: polynomial, a: 0.5}"."""
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style, yaml.width = True, sys.maxsize
    yaml.sort_base_mapping_type_on_output = False
    out = StringIO()
    # A bare scalar would end with a document's end marker.
    yaml.dump([value], out)
    return out.getvalue().strip()[1:-1]
