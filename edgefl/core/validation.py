"""Values checked against records in one pass: pydantic's words, with the file and line of each mistake."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from edgefl.core.errors import ScenarioError, UserError, closest, nearest, quoted
from edgefl.core.params import Strict, Unknown
from edgefl.core.yamls import Document

T = TypeVar("T")
Path = Sequence[str | int]


def validate(record: type[T], value: Any, document: Document, prefix: Path = ()) -> T:
    """Validates plain data, found at ``prefix`` in a document, with messages that name file, line and key."""
    try:
        return _adapter(record).validate_python(value, context=document.context)
    except ValidationError as error:
        errors = error.errors(include_url=False)
    mistakes, told = list[ScenarioError](), defaultdict[Path, list[ErrorDetails]](list)
    for one in errors:
        told[_written(one["loc"], value, missing=one["type"] == "missing")].append(one)
    for path, here in told.items():
        # Of a union, that member was meant whose errors are inside the value; and a list has too few items
        # without those that are wrong.
        if not any(len(other) > len(path) and other[: len(path)] == path for other in told):
            own = [one for one in here if one["type"] in _OWN_WORDS]
            mistakes.append(_told(own or here, path, record, document, prefix))
    first, *others = mistakes
    first.others = tuple(others)
    raise first


# Of errors that a record's own checks raise.
_OWN_WORDS = frozenset({"value_error", "assertion_error"})

_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def _told(
    errors: Sequence[ErrorDetails], at: Path, record: Any, document: Document, prefix: Path
) -> ScenarioError:
    """A mistake: one of pydantic's errors, or those of all members of a union."""
    first, path, hint = errors[0], [*prefix, *(key for key in at if key != _KEY)], ""
    kind, given, context = first["type"], first["input"], first.get("ctx", {})
    key = str(path[-1]) if path else ""
    if isinstance(given, Unknown):
        what, own = f"unknown key {key!r}", [name for name in given.known if name != "name"]
        hint = nearest(key, given.known) if own else "it has no parameters"
        if homes := [] if closest(key, given.known) else sorted(_homes(record, key), key=len):
            hint = f"{key!r} is a key of {repr(homes[0]) if homes[0] else 'the file itself'}"
    elif kind == "missing":
        what = f"{key!r} is missing"
    elif kind in _OWN_WORDS:
        error = context["error"]
        what, hint = (error.what, error.hint) if isinstance(error, UserError) else (str(error), "")
    else:
        each = dict.fromkeys(_words(one["msg"]) for one in errors)
        asked = " or ".join(each).replace(" or should ", " or ")
        shown = given if _KEY in at else item_at(document.data, path, given)
        what = f"{'.'.join(map(str, path)) or 'the file'} {asked}; got {quoted(shown)}"
        if kind in {"literal_error", "enum"}:
            near = closest(str(given), re.findall(r"'([^']*)'", context["expected"]))
            hint = f"did you mean {near!r}?" if near else ""
        elif kind in {"list_type", "tuple_type"} and isinstance(given, str):
            hint = f"write [{given}]"
    return ScenarioError(what, where=document.place(path), hint=hint)


def _words(message: str) -> str:
    """Pydantic's message, without its subject and in the words of YAML."""
    message = re.sub(r"a valid (dictionary|mapping).*", "a mapping of keys to values", message)
    message = re.sub(r"Input tag .* using (.*) does .*: (.*)", r"should have \1 set to one of \2", message)
    message = re.sub(r"Unable to .* discriminator (.*)", r"should have the key \1", message)
    message = re.sub("a valid (list|tuple)", "a list", message).replace(" after validation", "")
    for theirs, ours in _PLAINLY.items():
        message = message.replace(f"a valid {theirs}", ours)
    return re.sub(r"^(Input|Tuple|List|Dictionary|String|Value) ", "", message)


_PLAINLY = {"boolean": "true or false", "integer": "a whole number", "number": "a number", "string": "text"}


# What the location of a wrong key in a mapping ends with.
_KEY = "[key]"


def _written(loc: Path, value: Any, *, missing: bool) -> Path:
    """A location without what the data does not have, such as the tags of a union's members."""
    path = list[str | int]()
    for place, key in enumerate(loc):
        inner = item_at(value, [key], _written)
        if inner is not _written or key == _KEY or (missing and place == len(loc) - 1):
            path.append(key)
            value = inner
    return tuple(path)


def item_at(value: Any, path: Path, otherwise: Any = None) -> Any:
    """The value at a path in plain data."""
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return otherwise
    return value


def _homes(record: Any, key: str, above: str = "") -> Iterator[str]:
    """Where a record, or one inside it, has a key."""
    if isinstance(record, type) and issubclass(record, Strict):
        if key in {*record.model_fields, *record.SHORT_FORMS}:
            yield above
        for name, field in record.model_fields.items():
            yield from _homes(field.annotation, key, f"{above}.{name}".strip("."))
    elif get_origin(record) in {Annotated, Union, UnionType}:
        for inner in get_args(record):
            yield from _homes(inner, key, above)
