"""Descriptions of components: what ``edgefl show`` prints."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import WithJsonSchema
from pydantic.fields import FieldInfo

from edgefl.core import catalogue
from edgefl.core.components import Nothing
from edgefl.core.devices import Board, Systolic
from edgefl.core.errors import UnknownNameError, nearest
from edgefl.core.link import Link, Radio
from edgefl.core.sourced import Sourced, sourced
from edgefl.core.units import show_bits, show_bytes, show_flops, show_joules, show_seconds
from edgefl.planning.fleets import device, link

Rows = list[tuple[str, ...]]


class Description(NamedTuple):
    """A title, a text, and a table by its rows and headings; text and rows may be empty."""

    title: str
    text: str
    rows: Rows
    heads: tuple[str, ...]


def describe(kind: str, name: str) -> Description:
    """A component's description.

    Raises:
        UserError: the kind or the name is unknown, or the file is wrong.
    """
    plural = next((known for known in catalogue.KINDS if kind in {known, catalogue.singular(known)}), None)
    if plural is None:
        raise UnknownNameError(f"unknown kind {kind!r}", hint=nearest(kind, catalogue.KINDS))
    entry = catalogue.find(plural, name)
    title = f"{entry.name}  ({entry.path})"
    if plural in {"devices", "links"}:
        found: Board | Link = device(name) if plural == "devices" else link(name)
        text = "\n".join(filter(None, [_headline(found), found.notes.strip()]))
        return Description(title, text, _numbers(found), ("number", "value", "status", "source or reason"))
    if entry.path.suffix == ".yaml":
        return Description(title, entry.path.read_text(encoding="utf-8"), [], ())
    module = catalogue.load(plural, name)
    rows = _parameters(getattr(module, "Params", Nothing))
    return Description(title, inspect.getdoc(module) or "", rows, ("parameter", "default", "type", "meaning"))


def _headline(found: Board | Link) -> str:
    if isinstance(found, Link):
        return found.title
    training = f"\ntrains {found.training.supports}: {found.training.source}" if found.training else ""
    array = ""
    if isinstance(found, Systolic):
        array = (
            f"\ndataflow {found.dataflow}; strided input gradients by {found.stride_handling}; "
            f"depthwise convolutions on the {found.depthwise.replace('_', ' ')}"
        )
    kind = found.kind  # type: ignore[attr-defined]  # every kind has it
    return f"{found.title}; {found.category}, {kind}; in {', '.join(found.dtypes())}{array}{training}"


def _flops_s(value: float) -> str:
    return f"{show_flops(value)}/s"


def _bytes_s(value: float) -> str:
    return f"{show_bytes(value)}/s"


def _watts(value: float) -> str:
    return f"{value:g} W"


# By the last word of a number's name, or by the first if the last is a key of the file's own.
_SHOWN: dict[str, Callable[[Any], str]] = {
    "peak": _flops_s,
    "memory_bandwidth": _bytes_s,
    "bandwidth": _bytes_s,
    "size": show_bytes,
    "launch_overhead": show_seconds,
    "memory": show_bytes,
    "reserved_memory": show_bytes,
    "on_chip_memory": show_bytes,
    "idle": _watts,
    "active": _watts,
    "battery": lambda value: f"{value / 3600:.3g} Wh",
    "clock_rate": lambda value: f"{value / 1e6:g} MHz",
    "seconds": show_seconds,
    "latency": show_seconds,
    "down": show_bits,
    "up": show_bits,
}


_RADIO_UNITS = {
    "up_w_per_mbps": "W per Mbit/s",
    "down_w_per_mbps": "W per Mbit/s",
    "base": "W",
    "tail": "W",
    "tail_time": "s",
}


def _numbers(found: Board | Link) -> Rows:
    return [(name, _value(name, number), number.status, number.source) for name, number in sourced(found)]


def _value(name: str, number: Sourced[Any]) -> str:
    if number.value is None:
        return "unknown"
    if isinstance(number.value, Radio):
        draws = number.value.model_dump(exclude_defaults=True)
        return ", ".join(f"{key} {value:g} {_RADIO_UNITS[key]}" for key, value in draws.items())
    words = name.split(".")
    show = _SHOWN.get(words[-1]) or _SHOWN.get(words[0])
    return show(number.value) if show else f"{number.value:g}"


# By dimension, as ``core.units`` names them.
_QUANTITIES: dict[str, Callable[[float], str]] = {
    "time": show_seconds,
    "bytes": show_bytes,
    "byte rate": lambda value: f"{show_bytes(value)}/s",
    "operation rate": lambda value: f"{show_flops(value)}/s",
    "power": lambda value: f"{value:g} W",
    "energy": show_joules,
}


def _parameters(params: Any) -> Rows:
    schema = params.model_json_schema(mode="validation")
    required = set(schema.get("required", []))
    return [
        (
            name,
            "required" if name in required else _default(field, params.model_fields.get(name)),
            _kind(field),
            field.get("description", ""),
        )
        for name, field in schema.get("properties", {}).items()
        if name != "name"  # a named record's name is the file's
    ]


def _default(field: dict[str, Any], info: FieldInfo | None) -> str:
    value = field.get("default")
    show = next(filter(None, map(_shown, info.metadata if info else ())), None)
    if show and isinstance(value, (int, float)):
        return show(value)
    if isinstance(value, dict) and set(value) == {"name"}:
        value = value["name"]
    return "null" if value is None else str(value)


def _shown(annotation: Any) -> Callable[[float], str] | None:
    """The formatter of a quantity's default, found by the description that ``core.units`` gives it."""
    schema = annotation.json_schema if isinstance(annotation, WithJsonSchema) else None
    return _QUANTITIES.get((schema or {}).get("description", "").partition(",")[0])


def _kind(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_kind(arm) for arm in field["anyOf"])
    if "enum" in field:
        return " | ".join(map(str, field["enum"]))
    return str(field.get("type") or field.get("$ref", "").rsplit("/", 1)[-1] or "value").lower()
