"""YAML 1.2 files with errors that name file, line and key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from edgefl.core.errors import Place, ScenarioError


def text_of(path: Path) -> str:
    """A file's text.

    Raises:
        ScenarioError: the file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ScenarioError(f"cannot read {path.name}: {reason}", where=str(path)) from error


@dataclass(eq=False)
class Document:
    """A parsed YAML mapping that knows the location of its values.

    Attributes:
        file: the file's path, as messages print it.
        data: the mapping, in ruamel's commented types, or plain if it was not read from a file.
        elsewhere: dotted keys whose values come from elsewhere, such as the command line, and from where.
        context: how values are validated: ``units.RESOLVED`` if records were dumped to them, else None.
    """

    file: str
    data: dict[str, Any]
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    context: dict[str, str] | None = None

    @classmethod
    def read(cls, path: Path) -> Document:
        """Reads a file.

        Raises:
            ScenarioError: the file cannot be read, or is not a YAML mapping.
        """
        return cls.parse(text_of(path), str(path))

    @classmethod
    def parse(cls, text: str, file: str) -> Document:
        """Parses text; ``file`` is for messages.

        Raises:
            ScenarioError: it is not a YAML mapping, or repeats a key.
        """
        try:
            data = YAML(typ="rt", pure=True).load(text)
        except YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = str(Place(file, mark.line + 1 if mark else 0))
            if isinstance(error, DuplicateKeyError):
                duplicate = re.search(r'duplicate key "(.*?)" ', error.problem or "")
                what = f"duplicate key {duplicate[1]!r}" if duplicate else "duplicate key"
                raise ScenarioError(what, where=where, hint="remove one of them") from error
            problem = error.problem if isinstance(error, MarkedYAMLError) else error
            raise ScenarioError(f"not valid YAML: {problem}", where=where) from error
        if data is None:
            raise ScenarioError("the file is empty", where=file)
        if not isinstance(data, CommentedMap):
            raise ScenarioError("the file is not a mapping of keys to values", where=file)
        return cls(file, data)

    def place(self, path: Sequence[str | int]) -> Place:
        """The location of the value at ``path``, or of the nearest enclosing one that is written out."""
        dotted = ".".join(str(key) for key in path)
        for written, where in self.elsewhere.items():
            if f"{dotted}.".startswith(f"{written}."):
                return Place(where, 0, dotted)
        node: Any = self.data
        line = 0
        for key in path:
            line = _line_of(node, key) or line
            node = item(node, key)
        return Place(self.file, line, dotted)


def _line_of(node: Any, key: str | int) -> int:
    if not isinstance(node, CommentedMap | CommentedSeq):  # plain data has no lines
        return 0
    try:
        position = node.lc.key(key) if isinstance(node, CommentedMap) else node.lc.item(key)
    except (KeyError, AttributeError, TypeError, IndexError):
        return 0
    return int(position[0]) + 1 if position else 0


def item(value: Any, key: str | int) -> Any:
    """The value under a key or at an index; None if there is none."""
    try:
        return value[key]
    except (KeyError, IndexError, TypeError):
        return None


def plain(value: Any) -> Any:
    """Ruamel's commented types as plain dicts, lists and scalars."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def dump(value: Any) -> str:
    """Plain data as YAML text."""
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False
    out = StringIO()
    yaml.dump(value, out)
    return out.getvalue()
