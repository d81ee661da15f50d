"""Values as text: the one place that writes a figure."""

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

    The unit is as of ``core.units.amount``; what is written in one unit has a ``write`` in its place, see
    ``alike``. Bounds may be left out; what is unknown has them anyway.
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

    ``unknown`` stands where nothing is known, ``half`` is half of the interval over seeds; unit and ``write``
    are as of ``cell``.
    """
    write = write or partial(amount, unit=unit)
    own = None if mean is None else write(mean)
    # Of counts, whose digits say nothing of how exact a mean of them is, half an interval has two.
    two = f"{half:.2g}" if half and half < 10 else f"{half or 0:,.0f}"  # noqa: PLR2004 - else it has an exponent
    halves = [write(half) if unit else (two, "")] if half else []
    text = "" if own is None else joined([own, *halves], " ±")
    if bounds is None or (own is None and bounds.high is None and not bounds.low):
        return text or unknown
    low, high = write(bounds.low), None if bounds.high is None else write(bounds.high)
    if low == own == high:
        return text
    if low == own and high is None:
        return f"{AT_LEAST}{text}"
    if low == own or (own is None and not bounds.low):
        ends = f"at most {joined([high])}" if high else unknown
    elif high is None:
        ends = f"at least {joined([low])}"
    else:
        same = own is not None and low[1] == own[1] == high[1]
        ends = f"{low[0]} to {high[0]}" if same else span(low, high)
    return f"{text} ({ends})" if text else ends


def joined(numbers: Sequence[tuple[str, str]], sign: str = " ") -> str:
    """Numbers with their units; the unit once where all have the same one."""
    behind = [unit if unit == "%" or not unit else f" {unit}" for _, unit in numbers]
    if len({*behind}) == 1:
        return sign.join(number for number, _ in numbers) + behind[0]
    return sign.join(f"{number}{unit}" for (number, _), unit in zip(numbers, behind, strict=True))


def span(low: tuple[str, str], high: tuple[str, str]) -> str:
    """From one number to another."""
    return joined([high]) if low == high else joined([low, high], " to ")


def alike(label: str, unit: str, amounts: Sequence[float]) -> tuple[str, Write | None]:
    """The label of amounts that are printed in one unit, with that unit, and such an amount without it.

    All have as many decimals: the greatest three digits or up to two more, so that the least but 0 has two.
    The label alone where all are 0, or the unit has no larger and smaller ones.
    """
    sizes = [size for size in map(abs, amounts) if size and math.isfinite(size)]
    if not sizes or unit not in {"s", "B", "J", "FLOP", "g"}:
        return label, None
    scale, name = common_unit(unit, max(sizes))
    most, least = (math.floor(math.log10(size / scale)) for size in (max(sizes), min(sizes)))
    digits = max(0, 2 - most, min(1 - least, 4 - most))

    def write(value: float) -> tuple[str, str]:
        text = f"{value / scale:,.{digits}f}"
        return (text if not value or float(text.replace(",", "")) else f"<{10.0**-digits:.{digits}f}"), ""

    return f"{label} ({name})", write


def difference_text(one: Difference | None, unit: str, write: Write | None = None) -> str:
    """A difference: ``"-1.2 ±0.3 s"``; of shares, ``"+0.4 ±0.9 points (not separable at 5 seeds)"``."""
    if one is None:
        return MISSING
    if unit == "share":
        write = lambda share: (f"{100 * share:.1f}", "points")  # noqa: E731 - it has a type
    write = write or partial(amount, unit=unit)
    sign = "+" if one.mean > 0 else "-" if one.mean < 0 else ""
    numbers = [write(abs(one.mean)), *([write(one.half)] if one.half else [])]
    text = "equal" if one.mean == 0 == one.half else sign + joined(numbers, " ±")
    seeds = f"{one.pairs} of {one.of} seeds" if one.pairs < one.of else f"{one.pairs} seeds"
    words = []
    if one.half is None:
        words.append("one seed")
    elif is_open(one):
        words.append(f"not separable at {seeds}")
    elif one.pairs < one.of:
        words.append(seeds)
    words += [] if one.paired else ["unpaired"]
    return f"{text} ({', '.join(words)})" if words else text


def is_open(one: Difference) -> bool:
    """Whether a difference may be either way; where all are 0, the figures are equal."""
    return one.separable is False and bool(one.mean or one.half)


def setting_text(value: Any, key: str = "") -> str:
    """A setting's value for display; by its dotted key, some numbers have a unit."""
    if value is None:
        return MISSING
    if key in {"server.uplink", "server.downlink"}:
        return show_bits(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {setting_text(one)}" for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(setting_text, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
