"""Records as plain data, for the JSON documents that commands print."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

# Metadata of a dataclass field whose own keys stand among those of the record around it: {INLINE: its class}.
# They are all null where it is None.
INLINE = "inline"
# Metadata of a field that is left out where it is None.
OPTIONAL = {"optional": True}

_SCALARS = frozenset({str, float, int, bool, type(None)})


def document(value: Any) -> Any:
    """Plain data of records, mappings, sequences, NumPy arrays and paths, however nested.

    A dataclass, a NamedTuple or a pydantic model becomes an object with a key for each field; the underscore
    that tells a field from a keyword is dropped. NaN and infinities, which JSON lacks, become None.
    """
    # Most values by far, of which nothing else need be asked.
    kind = type(value)
    if kind in _SCALARS:
        return None if kind is float and not math.isfinite(value) else value
    if is_dataclass(value):
        return dict(_keys(value))
    # Of pydantic, NamedTuples and NumPy; importing their classes would slow every command down.
    for as_builtin in ("model_dump", "_asdict", "tolist"):
        if hasattr(value, as_builtin):
            return document(getattr(value, as_builtin)())
    if isinstance(value, Mapping):
        return {key: document(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [document(inner) for inner in value]
    return str(value) if isinstance(value, Path) else value


def _keys(record: Any) -> Iterator[tuple[str, Any]]:
    for one in fields(record):
        value = getattr(record, one.name)
        if INLINE not in one.metadata:
            if value is not None or "optional" not in one.metadata:
                yield one.name.removesuffix("_"), document(value)
        elif value is None:
            within = (inner for inner in fields(one.metadata[INLINE]) if "optional" not in inner.metadata)
            yield from ((inner.name, None) for inner in within)
        else:
            yield from document(value).items()
