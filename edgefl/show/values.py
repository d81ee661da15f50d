"""Values as text: the one place that writes a figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from edgefl.analysis.values import ROUNDING, Difference, Value
from edgefl.core.corners import Interval
from edgefl.core.units import amount, common_unit, show_bits, show_share
from edgefl.show.table import MISSING, NOT_REACHED, UNKNOWN

AT_LEAST = ">"
"""Stands before a figure that is a lower bound."""
LOWER_BOUND = f"{AT_LEAST} launch overhead unknown; time is a lower bound"
"""Says what the sign means."""
# What is more than this many times another amount is no percentage of it.
_MANY_TIMES = 10

Write = Callable[[float], tuple[str, str]]
"""A number as text, and its unit."""


def cell(value: Value | None, unit: str, *, bounds: bool = True, write: Write | None = None) -> str:
    """A value as text: ``"12 ±1 J (8 to 21)"``, ``"8 to 25 J"``, ``"not reached"``, ``"-"`` for none.

    Args:
        value: the value.
        unit: as of ``core.units.amount``.
        bounds: whether it has its bounds, too; what is unknown has them anyway.
        write: in place of the unit, for what is written in one unit; see ``alike``.
    """
    if value is None:
        return MISSING
    if not value.reached:
        return NOT_REACHED
    known = value.between if bounds or value.mean is None else None
    half = value.half if value.half and value.half > ROUNDING * abs(value.mean or 0.0) else None
    text = between(value.mean, known, unit, half=half, write=write)
    if value.name:
        text = f"{value.name} {text}"
    told = [of_whole(value.mean, value.whole)] if value.mean is not None and value.whole else []
    # Where some runs know a part alone, the mean is of the others.
    if value.known[1] and value.part is None and value.mean is not None:
        told.append(of_clients(value))
    if value.mean is not None and value.runs < value.of:
        told.append(f"{value.runs} of {value.of}")
    return f"{text} ({', '.join(told)})" if told else text


def of_whole(part: float, whole: float) -> str:
    """A share of a whole, or how many times it."""
    ratio = part / whole
    return show_share(ratio) if ratio < _MANY_TIMES else f"{ratio:,.0f}x"


def of_clients(value: Value) -> str:
    """How many clients a sum covers: ``"12 of 24 clients"``."""
    return f"{ends(value.known)} of {ends(value.clients)} clients"


def ends(counts: Sequence[int]) -> str:
    """The count that several have in common, or the least and the most."""
    least, most = min(counts), max(counts)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def between(
    mean: float | None,
    bounds: Interval | None,
    unit: str,
    unknown: str = UNKNOWN,
    *,
    half: float | None = None,
    write: Write | None = None,
) -> str:
    """A figure with its bounds: ``"12 J (8 to 21)"``, ``"at most 25 J"``, ``"8 to 25 J"``, ``">12 J"``.

    Args:
        mean: the figure; None if it is unknown.
        bounds: None if there are none.
        unit: as of ``cell``.
        unknown: stands where nothing is known.
        half: half of its interval over seeds.
        write: as of ``cell``.
    """
    write = write or partial(amount, unit=unit)
    if mean is not None:
        numbers = [mean, *([half] if half else [])]
        text = joined([write(one) for one in numbers], " ±")
        return text if bounds is None else _around(text, mean, bounds, write)
    if bounds is None or (bounds.high is None and not bounds.low):
        return unknown
    low = joined([write(bounds.low)])
    if bounds.high is None:
        return f"at least {low}"
    high = joined([write(bounds.high)])
    return f"at most {high}" if not bounds.low else span(write(bounds.low), write(bounds.high))


def _around(text: str, mean: float, bounds: Interval, write: Write) -> str:
    own, low = write(mean), write(bounds.low)
    high = None if bounds.high is None else write(bounds.high)
    if low == own:
        if high == own:
            return text
        return f"{text} (at most {joined([high])})" if high else f"{AT_LEAST}{text}"
    if high is None:
        return f"{text} (at least {joined([low])})"
    if low[1] == own[1] == high[1]:
        return f"{text} ({low[0]} to {high[0]})"
    return f"{text} ({span(low, high)})"


def joined(numbers: Sequence[tuple[str, str]], sign: str = " ") -> str:
    """Numbers with their units; the unit once where all have the same one."""
    units = {unit for _, unit in numbers}
    if len(units) == 1:
        (unit,) = units
        return sign.join(number for number, _ in numbers) + _behind(unit)
    return sign.join(f"{number}{_behind(unit)}" for number, unit in numbers)


def _behind(unit: str) -> str:
    return unit if unit == "%" or not unit else f" {unit}"


def span(low: tuple[str, str], high: tuple[str, str]) -> str:
    """From one number to another."""
    return joined([high]) if low == high else joined([low, high], " to ")


def alike(unit: str, amounts: Sequence[float]) -> tuple[str, Write] | None:
    """The unit of amounts that are printed in one unit, and such an amount without it.

    All have as many decimals: the greatest three digits or up to two more, so that the least but 0 has two.
    None where all are 0, or the unit has no larger and smaller ones.
    """
    sizes = [size for size in map(abs, amounts) if size and math.isfinite(size)]
    if not sizes or unit not in {"s", "B", "J", "FLOP", "g"}:
        return None
    scale, name = common_unit(unit, max(sizes))
    most, least = (math.floor(math.log10(size / scale)) for size in (max(sizes), min(sizes)))
    digits = max(0, 2 - most, min(1 - least, 4 - most))

    def write(value: float) -> tuple[str, str]:
        text = f"{value / scale:,.{digits}f}"
        return (text if not value or float(text.replace(",", "")) else f"<{10.0**-digits:.{digits}f}"), ""

    return name, write


def difference_text(one: Difference | None, unit: str, write: Write | None = None) -> str:
    """A difference: ``"-1.2 ±0.3 s"``, ``"+0.4 ±0.9 points (not separable at 5 seeds)"``.

    Args:
        one: the difference; None for none.
        unit: as of ``cell``; a difference of shares is in points.
        write: likewise.
    """
    if one is None:
        return MISSING
    if unit == "share":
        write = lambda share: (f"{100 * share:.1f}", "points")  # noqa: E731 - it has a type
    write = write or partial(amount, unit=unit)
    sign = "+" if one.mean > 0 else "-" if one.mean < 0 else ""
    numbers = [write(abs(one.mean)), *([write(one.half)] if one.half else [])]
    text = "equal" if one.mean == 0 == one.half else sign + joined(numbers, " ±")
    words = list(_words(one))
    return f"{text} ({', '.join(words)})" if words else text


def is_open(one: Difference) -> bool:
    """Whether a difference may be either way; where all are 0, the figures are equal."""
    return one.separable is False and bool(one.mean or one.half)


def _words(one: Difference) -> list[str]:
    seeds = f"{one.pairs} of {one.of} seeds" if one.pairs < one.of else f"{one.pairs} seeds"
    words = []
    if one.half is None:
        words.append("one seed")
    elif is_open(one):
        words.append(f"not separable at {seeds}")
    elif one.pairs < one.of:
        words.append(seeds)
    return words if one.paired else [*words, "unpaired"]


# Settings in base units that are shown with their unit, by dotted key.
_QUANTITIES = {"server.uplink": show_bits, "server.downlink": show_bits}


def setting_text(value: Any, key: str = "") -> str:
    """A setting's value for display.

    Args:
        value: the setting's.
        key: its dotted key, by which some numbers have a unit.
    """
    if value is None:
        return MISSING
    if key in _QUANTITIES:
        return _QUANTITIES[key](value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {setting_text(one)}" for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(setting_text, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
