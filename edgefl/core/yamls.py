"""YAML 1.2 files as plain data, with the file and line of each value.

PyYAML composes the text, by the core schema's scalars (https://yaml.org/spec/1.2.2/, 10.3): dates, times of
day, "yes" and "on" are text. No tag constructs an object, and what a few bytes expand to is bounded.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import yaml
from pydantic_core import to_jsonable_python
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from edgefl.core.errors import ScenarioError, UserError, in_one_line, short

# Limits of one text; `docs/scenarios.md` states them.
MOST_BYTES = 1_000_000
MOST_DEPTH = 50
MOST_VALUES = 100_000

_INT64 = 2**63
_WITHIN = "integers must be within 64 bits"

# The scalars that are no text: what they look like without quotes, and what they are then.
_STANDARD = "tag:yaml.org,2002:"
_TEXT = f"{_STANDARD}str"
_SCALARS: dict[str, tuple[str, Callable[[str], Any]]] = {
    f"{_STANDARD}null": ("~|null|Null|NULL|", lambda _: None),
    f"{_STANDARD}bool": (
        "true|True|TRUE|false|False|FALSE",
        lambda text: {"true": True, "false": False}[text.lower()],
    ),
    f"{_STANDARD}int": (
        "[-+]?[0-9]+(_[0-9]+)*|0o[0-7]+|0x[0-9a-fA-F]+|0b[01]+",
        lambda text: int(text, 0 if text[1:2].isalpha() else 10),
    ),
    f"{_STANDARD}float": (
        r"[-+]?([0-9]+(_[0-9]+)*(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        lambda text: float(re.sub(r"\.(inf|nan)", r"\1", text.lower())),
    ),
}

_TAGS = {ScalarNode: {_TEXT, *_SCALARS}, SequenceNode: {f"{_STANDARD}seq"}, MappingNode: {f"{_STANDARD}map"}}

Keys: TypeAlias = tuple[str | int, ...]

# The contexts of validation. Written by hand, as where there is no context: quantities with units, and names
# that are looked up.
WRITTEN = "by hand"
# Dumped records: plain numbers are in base units.
RESOLVED = "by a record"
# Those of a run that is only read: names stay, and components that need torch are not loaded.
RECORDED = "by a run"


def text_of(path: Path, most_bytes: int | None = None) -> str:
    """A file's text; raises a ``ScenarioError`` where it is not UTF-8, or has more than so many bytes."""
    try:
        if most_bytes is not None and path.stat().st_size > most_bytes:
            raise ScenarioError(f"{path.name} is larger than {most_bytes:,} bytes", where=str(path))
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        is_binary = isinstance(error, UnicodeError)
        reason = "it is not UTF-8 text" if is_binary else getattr(error, "strerror", None) or error
        raise ScenarioError(f"cannot read {path.name}: {reason}", where=str(path)) from error


@dataclass(frozen=True, eq=False)
class Document:
    """Plain data that know where they were written.

    Attributes:
        file: the file's path, as messages print it, or what else gave the data, such as "--set seed=3".
        data: a mapping, or for parts of one any value.
        places: the file and the line, 0 if unknown, of each value by its path; of a value in a mapping it is
            its key's line.
    """

    file: str
    data: Any
    context: str = WRITTEN
    places: Mapping[Keys, tuple[str, int]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Document":
        return cls.parse(text_of(path, MOST_BYTES), str(path))

    @classmethod
    def parse(cls, text: str, file: str) -> "Document":
        """The mapping in a text; ``file`` is for messages."""
        found = cls.value(text, file)
        if not isinstance(found.data, dict):
            raise ScenarioError("the file is not a mapping of keys to values", where=file)
        return found

    @classmethod
    def value(cls, text: str, file: str, *, lines: bool = True) -> "Document":
        """The one value in a text; ``lines`` says whether a line tells something about its source."""
        return _Composed(file, lines=lines).document(text)

    @classmethod
    def of(cls, value: Any, file: str) -> "Document":
        """A value of Python's, such as a mapping of settings; ``file`` is what gave it."""
        try:
            # Of NumPy's and PyTorch's numbers, ``item`` is Python's.
            plain = to_jsonable_python(value, fallback=lambda one: one.item())
            return cls(file, json.loads(json.dumps(plain), parse_int=_within))
        except (AttributeError, ValueError) as error:
            raise ScenarioError(f"a scenario cannot hold this: {error}", where=file) from None

    def written(self, path: Sequence[str | int]) -> tuple[str, int]:
        """The file and the line of the value at ``path``, or of the nearest one that is written out."""
        known = tuple(path)
        # What a setting alone has made is where the first thing inside it is.
        inside = (at for at in self.places if known and at[: len(known)] == known)
        known = known if known in self.places else next(inside, known)
        while known and known not in self.places:
            known = known[:-1]
        return self.places.get(known, (self.file, 0))

    def place(self, path: Sequence[str | int] = ()) -> str:
        """The location of the value at ``path`` for messages, with its key."""
        (file, line), dotted = self.written(path), ".".join(map(str, path))
        # An option such as "--set seed=x" names its own key.
        key = f", key {dotted!r}" if dotted and f" {dotted}=" not in file else ""
        return f"{file}:{line}{key}" if line else f"{file}{key}"

    def inside(self) -> "dict[Any, Document]":
        """The values of a mapping, by key, or of a list, by index; none of a scalar."""
        data = self.data
        keys = data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
        own = self.places.get((), (self.file, 0))
        places: dict[Any, dict[Keys, tuple[str, int]]] = {key: {(): own} for key in keys}
        for path, place in self.places.items():
            if path and path[0] in places:
                places[path[0]][path[1:]] = place
        return {key: Document(at[()][0], data[key], self.context, at) for key, at in places.items()}

    def without(self, *keys: str) -> "Document":
        return replace(self, data={key: value for key, value in self.data.items() if key not in keys})

    @contextmanager
    def placing(self) -> Iterator[None]:
        """Places errors that name a key alone, or nothing; a number too large for memory is an error, too."""
        try:
            yield
        except UserError as error:
            for each in (error, *error.others):
                if not each.where or (each.where != self.file and _KEYS.fullmatch(each.where)):
                    each.where = self.place(each.where.split(".") if each.where else [])
            raise
        except (OverflowError, MemoryError) as error:
            room = "this machine's memory" if isinstance(error, MemoryError) else "64 bits"
            what = f"what this asks for is too large: it does not fit into {room}"
            hint = "look for a number of epochs, steps, clients or units that is too large"
            raise ScenarioError(what, where=self.file, hint=hint) from error


def _within(text: str) -> int:
    if -_INT64 <= (number := int(text)) < _INT64:
        return number
    raise ValueError(f"{short(text)} is too large; {_WITHIN}")


# A key as code names it that has no document.
_KEYS = re.compile(r"[a-z_]+(\.[a-z_]+)*")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Composes, by the core schema."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes what the core schema, or YAML 1.1, would not read as text; writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's
        return True


for _tag, (_pattern, _) in _SCALARS.items():
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(_tag, re.compile(f"^({_pattern})$"), None)


def _text(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar(_TEXT, str(text), style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
_Dumper.add_multi_representer(str, _text)


class _Composed:
    """Makes plain data of composed nodes, and takes down their places."""

    def __init__(self, file: str, *, lines: bool) -> None:
        self._file, self._lines = file, lines
        self._places: dict[Keys, tuple[str, int]] = {}

    def document(self, text: str) -> Document:
        if len(text) > MOST_BYTES:
            self._refuse(f"more than {MOST_BYTES:,} bytes of YAML", 0)
        try:
            root = yaml.compose(text, Loader=_Loader)
            data = None if root is None else self._value(root, (), root.start_mark.line + 1)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            position = getattr(error, "position", None)
            line = mark.line + 1 if mark else text.count("\n", 0, position) + 1 if position else 0
            problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
            if problem.startswith("but "):
                problem = f"{getattr(error, 'context', '')}, {problem}"
            lines = text.splitlines() or [""]
            line = min(line, len(lines))
            hint = "indent by spaces" if "\t" in lines[line - 1] else ""
            self._refuse(f"not valid YAML: {problem}", line, hint)
        except (RecursionError, UnicodeEncodeError) as error:
            self._refuse(f"not valid YAML: {in_one_line(error)}", 0)
        return Document(self._file, data, places=self._places)

    def _value(self, node: Any, path: Keys, line: int) -> Any:
        if len(self._places) >= MOST_VALUES:
            self._refuse(f"there are more than {MOST_VALUES:,} values, with those of aliases", line)
        if len(path) >= MOST_DEPTH:
            self._refuse(f"values are nested more than {MOST_DEPTH} levels deep", line)
        self._places[path] = self._file, line if self._lines and path else 0
        if node.tag not in _TAGS[type(node)]:
            self._refuse(f"the tag {_shown(node.tag)} is not supported here", line, "remove it")
        if isinstance(node, ScalarNode):
            return self._scalar(node, line)
        if isinstance(node, SequenceNode):
            return [
                self._value(inner, (*path, place), inner.start_mark.line + 1)
                for place, inner in enumerate(node.value)
            ]
        return self._mapping(node, path)

    def _mapping(self, node: MappingNode, path: Keys) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, ScalarNode):
                self._refuse("a key must be a single word or number", line, "put quotes around braces")
            if key.value in found:
                self._refuse(f"duplicate key {short(key.value)!r}", line, "remove one of them")
            found[key.value] = self._value(value, (*path, key.value), line)
        return found

    def _scalar(self, node: ScalarNode, line: int) -> Any:
        if node.tag == _TEXT:
            return node.value
        try:
            value = _SCALARS[node.tag][1](node.value)
        except (ValueError, KeyError):  # also of 4,300 digits
            self._refuse(f"{short(node.value)!r} cannot be read as {_shown(node.tag)}", line)
        if isinstance(value, int) and not -_INT64 <= value < _INT64:
            self._refuse(f"the number {short(node.value)} is too large", line, _WITHIN)
        return value

    def _refuse(self, what: str, line: int, hint: str = "") -> NoReturn:
        where = f"{self._file}:{line}" if line and self._lines else self._file
        raise ScenarioError(what, where=where, hint=hint) from None


def _shown(tag: str | None) -> str:
    """A tag as people write it."""
    return short(str(tag).replace(_STANDARD, "!!", 1))


def dump(value: Any, *, in_line: bool = False) -> str:
    """Plain data as YAML text: a line for each value, or in one line: "{shape: polynomial, a: 0.5}"."""
    style: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "width": 10**9}
    if in_line:  # A bare scalar would end with a document's end marker.
        return str(yaml.dump([value], Dumper=_Dumper, default_flow_style=True, **style)).strip()[1:-1]
    return str(yaml.dump(value, Dumper=_Dumper, default_flow_style=False, **style))
