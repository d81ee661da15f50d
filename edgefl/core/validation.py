"""Values checked against records, with errors that name file, line and key."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from edgefl.core.errors import ScenarioError, nearest
from edgefl.core.named import ByName
from edgefl.core.yamls import Document, item

T = TypeVar("T", bound=BaseModel)


def validate(model: type[T], value: Any, document: Document, prefix: Sequence[str | int] = ()) -> T:
    """Validates ``value`` against ``model``, with messages that name file, line and key.

    Args:
        model: the record.
        value: plain data, found at ``prefix`` in ``document``.
        document: the source.
        prefix: its path there.

    Raises:
        ScenarioError: describes the first error and counts the others.
    """
    try:
        return model.model_validate(value, context=document.context)
    except ValidationError as error:
        raise _explain(error, model, value, document, prefix) from None


def _explain(
    error: ValidationError,
    model: type[BaseModel],
    value: Any,
    document: Document,
    prefix: Sequence[str | int],
) -> ScenarioError:
    first, *more = error.errors(include_url=False)
    path = [*prefix, *_written(first["loc"], document, prefix)]
    key = str(path[-1]) if path else ""
    near = ""
    if first["type"] == "extra_forbidden":
        what = f"unknown key {key!r}"
        known = _siblings(model, value, first["loc"])
        near = nearest(key, known) if known else "no keys are allowed here"
    elif first["type"] == "missing":
        what = f"{key!r} is missing"
    elif first["type"] == "literal_error":
        expected = first["ctx"]["expected"]
        what = f"{first['input']!r} is not one of {expected}"
        near = nearest(str(first["input"]), _words(expected))
    elif first["type"] == "unknown_name":
        what, near = first["msg"], first["ctx"]["hint"]
    else:
        message = _about(key, first["type"], first["msg"].removeprefix("Value error, "))
        what = message if first["type"] == "value_error" else f"{message}; got {first['input']!r}"
    others = f"(and {len(more)} more {'error' if len(more) == 1 else 'errors'})" if more else ""
    return ScenarioError(what, where=str(document.place(path)), hint=" ".join(filter(None, [near, others])))


def _about(key: str, kind: str, message: str) -> str:
    """Pydantic's message, with the key's name in place of "Input" and with YAML's word for a record."""
    if kind in {"model_type", "model_attributes_type", "dataclass_type", "dict_type"}:
        message = "Input should be a mapping of keys to values"
    return re.sub(r"^(Input|String|List|Tuple|Dictionary) should", f"{key!r} should", message)


def _words(expected: str) -> list[str]:
    return [word.strip(" '\"") for word in expected.replace(" or ", ",").split(",")]


def _written(loc: Sequence[str | int], document: Document, prefix: Sequence[str | int]) -> list[str | int]:
    """A location without the tags that pydantic adds for the members of a union."""
    node: Any = document.data
    for key in prefix:
        node = item(node, key)
    path: list[str | int] = []
    for place, key in enumerate(loc, start=1):
        known = range(len(node)) if isinstance(node, list) else node if isinstance(node, dict) else ()
        if key in known:
            node = node[key]
        elif place < len(loc):
            continue
        path.append(key)
    return path


def _siblings(model: type[BaseModel], value: Any, loc: Sequence[str | int]) -> list[str]:
    """The keys that are valid in place of ``loc``'s last one."""
    current: Any = model
    for key in loc[:-1]:
        value = item(value, key)
        current = _inner(current, key, value)
    return sorted({name for arm in _models(current) for name in arm.model_fields})


def _inner(model: Any, key: str | int, value: Any) -> Any:
    """What a value under a key is validated as: a record that is found by name, or the field's annotation."""
    for arm in _models(model):
        if key in arm.model_fields:
            field = arm.model_fields[key]
            named = (one.record(value) for one in field.metadata if isinstance(one, ByName))
            return next(named, field.annotation)
    # Of a list, the record that an element's name decides.
    notes = [note for inner in getattr(model, "__args__", ()) for note in getattr(inner, "__metadata__", ())]
    return next((note.record(value) for note in notes if isinstance(note, ByName)), model)


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for inner in getattr(annotation, "__args__", ()) for found in _models(inner)]
