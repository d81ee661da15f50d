"""Descriptions of components: what ``edgefl show`` prints."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from pydantic import WithJsonSchema
from pydantic.fields import FieldInfo

from edgefl.core import catalogue
from edgefl.core.components import params_of
from edgefl.core.devices import Board
from edgefl.core.inheriting import TAKEN
from edgefl.core.link import Link, Radio
from edgefl.core.link_traces import LinkTrace
from edgefl.core.sourced import Sourced, sourced
from edgefl.core.units import show_bits, show_bytes, show_flops, show_grams, show_joules, show_seconds
from edgefl.core.yamls import dump
from edgefl.planning.fleets import device, link

Rows = list[tuple[str, ...]]


class Description(NamedTuple):
    """A title, a text, and a table by its rows and headings; text and rows may be empty."""

    title: str
    text: str
    rows: Rows
    heads: tuple[str, ...]


def describe(kind: str, name: str) -> Description:
    """A component's description; a ``UserError`` if the kind or the name is unknown, or the file is wrong."""
    plural = catalogue.kind_of(kind)
    entry = catalogue.find(plural, name, where="NAME")
    title = f"{entry.name}  ({entry.path})"
    if plural in {"devices", "links"}:
        found: Board | Link = device(name) if plural == "devices" else link(name)
        numbers = list(sourced(found))
        text = "\n".join(filter(None, [_headline(found), _assumed(numbers), found.notes.strip()]))
        rows: Rows = [(key, written_number(key, one), one.status, one.source) for key, one in numbers]
        return Description(title, text, rows, ("number", "value", "status", "source or reason"))
    if entry.path.suffix == ".yaml":
        return Description(title, entry.path.read_text(encoding="utf-8"), [], ())
    module = catalogue.load(plural, name)
    params = parameters(params_of(plural, module))
    text = _unwrapped(inspect.getdoc(module) or "")
    return Description(title, text, params, ("parameter", "default", "type", "meaning"))


def _assumed(numbers: Sequence[tuple[str, Sourced[Any]]]) -> str:
    """How many numbers of a file that is like others are assumed; empty for any other file."""
    others = dict.fromkeys(match[2] for _, one in numbers if (match := TAKEN.match(one.source)))
    assumed = sum(one.status == "assumed" for _, one in numbers)
    sources = ", ".join(f"edgefl show device {name}" for name in others)
    said = f"{assumed} of {len(numbers)} numbers are assumed; sources of those taken: {sources}"
    return said if others else ""


def _unwrapped(text: str) -> str:
    """Paragraphs in one line each; those with indented lines, such as lists, stay."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(
        each if re.search(r"(?m)^[ -]", each) else each.replace("\n", " ") for each in paragraphs
    )


def _headline(found: Board | Link) -> str:
    if isinstance(found, Link):
        return found.title if found.trace is None else f"{found.title}\n{_changes(found.trace)}"
    training = f"\ntrains {found.training.supports}: {found.training.source}" if found.training else ""
    array = f"\n{found.in_words()}".rstrip()
    types = ", ".join(found.dtypes())
    if more := [dtype for dtype in found.dtypes(inference=True) if dtype not in found.dtypes()]:
        types += f", inference also in {', '.join(more)}"
    return f"{found.title}; {found.category}, {found.kind}; in {types}{array}{training}"


def _changes(trace: LinkTrace) -> str:
    """What a trace is, and between which values it changes."""
    ends = []
    for name in trace.gives:
        low, high = trace.range(name)
        show = show_seconds if name == "latency" else show_bits
        ends.append(f"{name} {bounded(show(low), None, show(high))}")
    return f"follows {trace.in_words()}: {', '.join(ends)}"


_RADIO_UNITS = {
    "up_w_per_mbps": "W per Mbit/s",
    "down_w_per_mbps": "W per Mbit/s",
    "base": "W",
    "tail": "W",
    "tail_time": "s",
}


def written_number(name: str, number: Sourced[Any]) -> str:
    """A number with its bounds: ``"5 W (4 to 8 W)"``, ``"at most 15 W"``; a radio's by its parts."""
    ends = number.low, number.value, number.high
    if not any(isinstance(one, Radio) for one in ends):
        kind = type(number)
        return bounded(*(None if one is None else _amount(name, kind, one) for one in ends)) or "unknown"
    radios = [None if one is None else one.model_dump() for one in ends]
    parts = {
        key: bounded(*(None if one is None else f"{one[key]:g} {unit}" for one in radios))
        for key, unit in _RADIO_UNITS.items()
        if any(one is not None and (one[key] or key == "base") for one in radios)
    }
    return ", ".join(f"{key} {text}" for key, text in parts.items())


def bounded(low: str | None, value: str | None, high: str | None) -> str:
    """A text with its bounds; empty if nothing is given."""
    if low is not None and high is not None:
        number, _, unit = low.partition(" ")
        bounds = f"{number if high.split()[1:] == [unit] else low} to {high}" if low != high else low
    else:
        bounds = f"at least {low}" if low is not None else f"at most {high}" if high is not None else ""
    if value is None or not bounds or bounds == value:
        return value or bounds
    return f"{value} ({bounds})"


def _amount(name: str, kind: type[Sourced[Any]], amount: float) -> str:
    if name == "battery.capacity":
        return f"{amount / 3600:.3g} Wh"
    kinds = get_args(kind.model_fields["value"].annotation)
    show = _shown(note for one in kinds for note in getattr(one, "__metadata__", ()))
    return show(amount) if show else f"{amount:g}"


def shown_number(name: str, number: Sourced[Any], value: Any) -> str:
    """A value as text, to three digits, of a number of a dotted name in a device or a link."""
    if not isinstance(value, Radio):
        return _amount(name, type(number), float(f"{value:.3g}"))
    draws = value.model_dump(exclude_defaults=True)
    return ", ".join(f"{key} {amount:.3g} {_RADIO_UNITS[key]}" for key, amount in draws.items())


def parameters(params: Any) -> Rows:
    """A record's keys: the name, the default, the type and the meaning of each."""
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
    show = _shown(info.metadata if info else ())
    if show and isinstance(value, (int, float)):
        return show(value)
    if isinstance(value, dict) and set(value) == {"name"}:
        value = value["name"]
    return dump(value, in_line=True)


# How quantities are shown, by their dimension as ``core.units`` names it.
_SHOWN: Mapping[str, Callable[[float], str]] = {
    "time": show_seconds,
    "size": show_bytes,
    "byte rate": lambda value: f"{show_bytes(value)}/s",
    "bit rate": show_bits,
    "operation rate": lambda value: f"{show_flops(value)}/s",
    "power": lambda value: f"{value:g} W",
    "energy": show_joules,
    "frequency": lambda value: f"{value / 1e6:g} MHz",
    "mass": show_grams,
    "energy per byte": lambda value: f"{value:g} kWh/GB",
}


def _shown(notes: Iterable[Any]) -> Callable[[float], str] | None:
    """A quantity's format, by the description that ``core.units`` gives its type; None for a plain number."""
    schemas = (note.json_schema or {} for note in notes if isinstance(note, WithJsonSchema))
    named = (schema.get("description", "").partition(",")[0] for schema in schemas)
    return next((_SHOWN[dimension] for dimension in named if dimension in _SHOWN), None)


def _kind(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_kind(arm) for arm in field["anyOf"])
    if "component" in field:
        return catalogue.singular(field["component"])
    if "enum" in field:
        return " | ".join(map(str, field["enum"]))
    return str(field.get("type") or field.get("$ref", "").rsplit("/", 1)[-1] or "value").lower()
