"""YAML 1.2 files with errors that name file, line and key."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from edgefl.core.errors import Place, ScenarioError, UserError
from edgefl.core.nodes import MOST_BYTES, Node, compose, written


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
        context: how values are validated: ``units.RESOLVED`` if records were dumped to them, else None.
        root: the same values with their places; None if they were not read from YAML.
    """

    file: str
    data: dict[str, Any]
    context: dict[str, str] | None = None
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


# What stands without quotes, and every YAML reads as text: words and paths.
_PLAIN = re.compile(
    r"(?!(?:null|true|false|yes|no|on|off|y|n)$)[a-z_/][\w/+.()%=-]*(?: [\w/+.()%=-]+)*",
    re.ASCII | re.IGNORECASE,
)
# What a literal block has as it is.
_BLOCK = re.compile(r"[!-~][\n -~]*[!-~]")


def dump(value: Any) -> str:
    """Plain data as YAML text: a line for each value, several for a text of several lines.

    A plan has thousands of values, which ruamel's emitter takes longer to write than a short run takes.
    """
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            first, *rest = _lines(inner)
            nested = isinstance(inner, dict | list | tuple) and inner
            yield from (f"{_scalar(key)}:", f"  {first}") if nested else (f"{_scalar(key)}: {first}",)
            yield from (f"  {line}" for line in rest)
    elif isinstance(value, list | tuple) and value:
        for inner in value:
            first, *rest = _lines(inner)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    elif isinstance(value, str) and "\n" in value and _BLOCK.fullmatch(value):
        yield "|-"
        yield from value.split("\n")
    else:
        yield _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else _quoted(value)
    if isinstance(value, float):
        text = float.__repr__(value)
        return re.sub("(inf|nan)$", r".\1", text)
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    if isinstance(value, dict | list | tuple):
        return "{}" if isinstance(value, dict) else "[]"
    raise TypeError(f"YAML cannot hold a {type(value).__name__}")


def _quoted(text: str) -> str:
    """In double quotes, every character that is not printed by its number."""
    shown = (one if one.isprintable() else f"\\U{ord(one):08x}" for one in re.sub(r'(["\\])', r"\\\1", text))
    return f'"{"".join(shown)}"'


def in_line(value: Any) -> str:
    """Plain data as YAML in one line: "{shape: polynomial, a: 0.5}"."""
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style, yaml.width = True, sys.maxsize
    yaml.sort_base_mapping_type_on_output = False
    out = StringIO()
    # A bare scalar would end with a document's end marker.
    yaml.dump([value], out)
    return out.getvalue().strip()[1:-1]
