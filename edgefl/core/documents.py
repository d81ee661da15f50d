"""Records as plain data, for the JSON documents that commands print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from typing import Any

from pydantic import BaseModel

# Metadata of a dataclass field whose own keys stand among those of the record around it.
INLINE = {"inline": True}


def document(value: Any) -> Any:
    """Plain data of records, mappings and sequences, however nested.

    A dataclass becomes an object with a key for each field. A field whose default is None is left out where
    it is None; the underscore that tells a name from a keyword is dropped. A NamedTuple is an object, too.
    """
    if is_dataclass(value):
        found: dict[str, Any] = {}
        for one in fields(value):
            inner = getattr(value, one.name)
            if not _left_out(one, inner):
                plain = document(inner)
                found |= plain if "inline" in one.metadata else {one.name.removesuffix("_"): plain}
        return found
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: document(inner) for key, inner in value.items()}
    return [document(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _left_out(one: Field[Any], value: Any) -> bool:
    return value is None and one.default is None
