"""Devices and links with some of their numbers changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import BaseModel

from edgefl.core.sourced import Sourced

Record = TypeVar("Record", bound=BaseModel)


def replaced(record: Record, numbers: Mapping[str, Sourced[Any]]) -> Record:
    """A record with some of its numbers replaced, by the dotted names of ``sourced``."""
    copied: Record = _replaced(record, "", numbers)
    return copied


def _replaced(value: Any, name: str, numbers: Mapping[str, Sourced[Any]]) -> Any:
    if isinstance(value, Sourced):
        return numbers.get(name, value)
    below = f"{name}." if name else ""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        return value.model_copy(
            update={key: _replaced(getattr(value, key), f"{below}{key}", numbers) for key in fields}
        )
    if isinstance(value, dict):
        return {key: _replaced(one, f"{below}{key}", numbers) for key, one in value.items()}
    if isinstance(value, tuple):
        return tuple(_replaced(one, f"{below}{place}", numbers) for place, one in enumerate(value))
    return value


def scaled(number: Sourced[Any], value: Any, factor: float) -> Any:
    """A value of a number's kind times a factor, as near to it as the kind allows.

    Of a record, all numbers are multiplied.
    """
    (kind,) = type(number).__pydantic_generic_metadata__["args"]
    if isinstance(value, BaseModel):
        return value.model_copy(
            update={key: getattr(value, key) * factor for key in type(value).model_fields}
        )
    return _allowed(kind, value, factor)


def _allowed(kind: Any, value: float, factor: float) -> float:
    found = value * factor
    for name, limit in _limits(kind):
        if name == "ge":
            found = max(found, limit)
        elif name == "le":
            found = min(found, limit)
        elif name == "lt" and found >= limit:
            # What is left below the limit shrinks by the factor.
            found = limit - (limit - value) / factor
    return round(found) if _plain(kind) is int else found


def _limits(kind: Any) -> Iterator[tuple[str, float]]:
    """The least and the most that numbers of a kind may be."""
    for note in get_args(kind)[1:] if get_origin(kind) is Annotated else ():
        for one in getattr(note, "metadata", ()):
            yield from ((name, getattr(one, name)) for name in ("ge", "le", "lt") if hasattr(one, name))


def _plain(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind
