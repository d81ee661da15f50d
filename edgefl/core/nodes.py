"""YAML 1.2 text composed into plain values that know where they were written.

ruamel.yaml splits the text into events. They are put together here, so that no tag constructs an object, each
value keeps its line, and what a few bytes expand to is bounded. Plain scalars are read by the core schema of
YAML 1.2 (https://yaml.org/spec/1.2.2/, section 10.3), in ruamel's spelling, in which it also writes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from edgefl.core.errors import Place, ScenarioError, short

# Limits of one text; `docs/scenarios.md` states them.
MOST_BYTES = 1_000_000
MOST_DEPTH = 50
MOST_VALUES = 100_000

_INT64 = 2**63
# Digits that an integer within 64 bits may have, leading zeros included; Python refuses to read 4,300.
_MOST_DIGITS = 100

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT = re.compile(r"([-+]?)(?:0b([01_]+)|0o([0-7_]+)|0x([0-9a-fA-F_]+)|([0-9][0-9_]*))")
_BASES = (2, 8, 16, 10)
_FLOAT = re.compile(
    r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+"
    r"|[-+]?\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
)
_SPECIAL = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")

_STANDARD = "tag:yaml.org,2002:"
_SCALARS = {"str": str, "int": int, "float": float, "bool": bool, "null": type(None)}
_MERGE = "<<"


class Node(NamedTuple):
    """A value and where it was written.

    Attributes:
        value: a scalar, a dict of nodes by key, or a list of nodes.
        file: the file, or what else messages call the source.
        line: 1-based; 0 if unknown. Of a value in a mapping it is its key's line.
    """

    value: Any
    file: str
    line: int = 0

    @property
    def plain(self) -> Any:
        """The value as plain data."""
        if isinstance(self.value, dict):
            return {key: inner.plain for key, inner in self.value.items()}
        return [inner.plain for inner in self.value] if isinstance(self.value, list) else self.value

    def child(self, key: str | int) -> Node | None:
        """The node under a key or at an index; None if there is none."""
        try:
            found = self.value[key]
        except (KeyError, IndexError, TypeError):
            return None
        return found if isinstance(found, Node) else None

    def size(self) -> int:
        """How many values there are, the node's own included."""
        inner = self.value.values() if isinstance(self.value, dict) else self.value
        return 1 + (sum(one.size() for one in inner) if isinstance(self.value, dict | list) else 0)


_WITHIN = "integers must be within 64 bits"
_NOT_UNICODE = "has a character that is not valid Unicode"


def written(value: Any, file: str, depth: int = 1) -> Node:
    """Plain data, such as a mapping that was given in Python, as a node.

    Raises:
        ScenarioError: YAML could not hold it: an object of another type, or nested too deeply.
    """
    if depth > MOST_DEPTH:
        raise ScenarioError(f"values are nested more than {MOST_DEPTH} levels deep", where=file)
    if isinstance(value, Mapping):
        return Node(
            {_key_of(key, file): written(inner, file, depth + 1) for key, inner in value.items()}, file
        )
    if isinstance(value, list | tuple):
        return Node([written(inner, file, depth + 1) for inner in value], file)
    if isinstance(value, PurePath):
        value = str(value)
    elif hasattr(value, "item"):  # a number of NumPy or PyTorch
        value = value.item()
    if not isinstance(value, str | int | float | None):
        raise ScenarioError(f"a scenario cannot hold a {type(value).__name__}", where=file)
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        what = f"an integer of {value.bit_length()} bits is too large"
        raise ScenarioError(what, where=file, hint=_WITHIN)
    if isinstance(value, str) and not _encodes(value):
        raise ScenarioError(f"{short(ascii(value))} {_NOT_UNICODE}", where=file)
    return Node(value, file)


def _key_of(key: Any, file: str) -> str:
    if not isinstance(key, str | int | float | None):
        raise ScenarioError(f"a key cannot be a {type(key).__name__}", where=file)
    return str(key)


def compose(text: str, file: str, *, lines: bool = True, limited: bool = True) -> Node:
    """The one document in a text.

    Args:
        text: YAML.
        file: its source, for messages.
        lines: whether a line tells something about the source.
        limited: whether the text is refused if it is too long or has too many values.

    Raises:
        ScenarioError: it is not valid YAML, repeats a key, has a tag that the core schema lacks, or exceeds a
            limit.
    """
    return _Composer(text, file, lines=lines, limited=limited).document()


class _Anchored(NamedTuple):
    """A node that aliases may refer to, how many values it has, and how deeply they are nested."""

    node: Node
    values: int
    height: int


class _Composer:
    def __init__(self, text: str, file: str, *, lines: bool, limited: bool) -> None:
        self._text, self._file, self._lines, self._limited = text, file, lines, limited
        self._anchors: dict[str, _Anchored | None] = {}
        self._count = 0
        self._line = 0  # of the last event

    def document(self) -> Node:
        """See ``compose``."""
        if self._limited and len(self._text.encode(errors="surrogatepass")) > MOST_BYTES:
            self._refuse(f"more than {MOST_BYTES:,} bytes of YAML", 0)
        self._events = self._all_events()
        root = Node(None, self._file)
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                root, _ = self._node(next(self._events), 1)
                break
        next(self._events, None)
        again = next(self._events, None)
        if again is not None and not isinstance(again, StreamEndEvent):
            self._refuse("there is a second document after '---'", self._line, "write one document a file")
        return root

    def _all_events(self) -> Iterator[Any]:
        try:
            for event in YAML(typ="safe", pure=True).parse(self._text):
                self._line = event.start_mark.line + 1
                yield event
        except YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            position = getattr(error, "position", None)
            line = mark.line + 1 if mark else self._text.count("\n", 0, position) + 1 if position else 0
            problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
            self._refuse(f"not valid YAML: {problem}", line)
        except (ArithmeticError, ValueError):  # an escape such as "\UFFFFFFFF"
            self._refuse("not valid YAML: a character that does not exist", self._line)

    def _node(self, event: Any, depth: int, line: int = 0) -> tuple[Node, int]:
        """The node that begins with an event, and how deeply it is nested itself; a scalar's depth is 1."""
        line = line or event.start_mark.line + 1
        if isinstance(event, AliasEvent):
            return self._alias(event.anchor, depth, line)
        before = self._count
        self._counted(1, line)
        if event.anchor:
            self._anchors[event.anchor] = None
        if isinstance(event, ScalarEvent):
            value, height = self._scalar(event, line), 1
        elif depth >= MOST_DEPTH:
            self._too_deep(line)
        elif isinstance(event, MappingStartEvent):
            value, height = self._mapping(event, depth, line)
        else:
            value, height = self._sequence(event, depth, line)
        node = Node(value, self._file, line if self._lines else 0)
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(node, self._count - before, height)
        return node, height

    def _alias(self, name: str, depth: int, line: int) -> tuple[Node, int]:
        if name not in self._anchors:
            self._refuse(f"nothing before the alias '*{name}' is named '&{name}'", line)
        found = self._anchors[name]
        if found is None:
            self._refuse(f"the alias '*{name}' stands inside of what it refers to", line)
        if depth + found.height - 1 > MOST_DEPTH:
            self._too_deep(line)
        self._counted(found.values, line)
        return found.node._replace(line=line if self._lines else 0), found.height

    def _mapping(self, event: MappingStartEvent, depth: int, line: int) -> tuple[dict[str, Node], int]:
        self._check_tag(event, "map", line)
        own: dict[str, Node] = {}
        merged: dict[str, Node] = {}
        height = 1
        while not isinstance(key_event := next(self._events), MappingEndEvent):
            at = key_event.start_mark.line + 1
            key, merges = self._key(key_event, at)
            value, below = self._node(next(self._events), depth + 1, at)
            height = max(height, 1 + below)
            if key in own or (merges and merged):
                self._refuse(f"duplicate key {short(key)!r}", at, "remove one of them")
            if merges:
                merged = self._merged(value, at)
            else:
                own[key] = value
        return {**merged, **own}, height

    def _key(self, event: Any, line: int) -> tuple[str, bool]:
        """A key as it is written, and whether it merges another mapping's keys."""
        if isinstance(event, AliasEvent):
            value = self._alias(event.anchor, 1, line)[0].value
            if not isinstance(value, str):
                self._refuse("an alias of something other than text is no key", line)
            return value, False
        if not isinstance(event, ScalarEvent):
            self._refuse("a key must be a single word or number", line, "put quotes around braces in a key")
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(Node(event.value, self._file, line), 1, 1)
        self._counted(1, line)
        if event.tag not in {None, "!", f"{_STANDARD}str"}:
            self._refuse(f"the tag {_shown(event.tag)} is not supported in a key", line, "remove it")
        self._check_unicode(event.value, line)
        return event.value, event.value == _MERGE and event.implicit[0]

    def _merged(self, value: Node, line: int) -> dict[str, Node]:
        """The keys of the mapping, or of the mappings, under ``<<``; the first of two equal ones counts."""
        several = value.value if isinstance(value.value, list) else [value]
        if not all(isinstance(one.value, dict) for one in several):
            self._refuse("'<<' must have a mapping, or a list of mappings", line)
        return {key: inner for one in reversed(several) for key, inner in one.value.items()}

    def _sequence(self, event: SequenceStartEvent, depth: int, line: int) -> tuple[list[Node], int]:
        self._check_tag(event, "seq", line)
        found, height = [], 1
        while not isinstance(inner := next(self._events), SequenceEndEvent):
            node, below = self._node(inner, depth + 1)
            found.append(node)
            height = max(height, 1 + below)
        return found, height

    def _check_tag(self, event: Any, known: str, line: int) -> None:
        tag = event.tag or "!"
        if tag not in {"!", _STANDARD + known}:
            self._refuse(f"the tag {_shown(tag)} is not supported here", line, "remove it")

    def _scalar(self, event: ScalarEvent, line: int) -> Any:
        text, tag = event.value, event.tag
        self._check_unicode(text, line)
        if tag is None or tag == "!":
            return self._resolved(text, line) if event.implicit[0] and tag is None else text
        kind = _SCALARS.get(tag.removeprefix(_STANDARD))
        if kind is None:
            self._refuse(f"the tag {_shown(tag)} is not supported here", line, "remove it")
        if kind is str:
            return text
        value = self._resolved(text, line)
        if kind is float and type(value) is int:
            return float(value)
        if type(value) is not kind:
            self._refuse(f"{short(text)!r} cannot be read as {_shown(tag)}", line)
        return value

    def _check_unicode(self, text: str, line: int) -> None:
        if not _encodes(text):
            self._refuse(f"{short(ascii(text))} {_NOT_UNICODE}", line)

    def _resolved(self, text: str, line: int) -> Any:
        """A plain scalar by the core schema."""
        if text in _WORDS:
            return _WORDS[text]
        if match := _INT.fullmatch(text):
            sign, *digits = match.groups()
            return self._integer(sign, digits, text, line)
        if _FLOAT.fullmatch(text):
            number = float(text.replace("_", ""))
            if math.isinf(number):
                self._refuse(f"the number {short(text)} is too large", line)
            return number
        if _SPECIAL.fullmatch(text):
            return float(text.replace(".", "").lower())
        return text

    def _integer(self, sign: str, digits: Sequence[str | None], text: str, line: int) -> int | str:
        base, written_ = next((base, one) for base, one in zip(_BASES, digits, strict=True) if one)
        written_ = written_.replace("_", "")
        if not written_:
            return text
        number = int(sign + written_, base) if len(written_) <= _MOST_DIGITS else _INT64
        if not -_INT64 <= number < _INT64:
            self._refuse(f"the number {short(text)} is too large", line, _WITHIN)
        return number

    def _counted(self, values: int, line: int) -> None:
        self._count += values
        if self._limited and self._count > MOST_VALUES:
            self._refuse(
                f"there are more than {MOST_VALUES:,} values", line, "an alias counts all that it refers to"
            )

    def _too_deep(self, line: int) -> NoReturn:
        self._refuse(f"values are nested more than {MOST_DEPTH} levels deep", line)

    def _refuse(self, what: str, line: int, hint: str = "") -> NoReturn:
        where = str(Place(self._file, line if self._lines else 0))
        raise ScenarioError(what, where=where, hint=hint) from None


def _encodes(text: str) -> bool:
    """Whether a text has no surrogates, which no file can hold."""
    return text.isascii() or not any("\ud800" <= one <= "\udfff" for one in text)


def _shown(tag: str) -> str:
    """A tag as people write it."""
    suffix = tag.removeprefix(_STANDARD)
    return short(tag if suffix == tag else f"!!{suffix}")
