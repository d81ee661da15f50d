"""Figures with their bounds, as texts of a cell."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

from edgefl.core.corners import Interval
from edgefl.core.ledger import EnergyTotal
from edgefl.core.units import show_joules
from edgefl.report.averages import Bounds, Compared, Figure
from edgefl.report.tables import MISSING, UNKNOWN, energy

AT_LEAST = ">"
"""Stands before a figure that is a lower bound."""
LOWER_BOUND = f"{AT_LEAST} launch overhead unknown; time is a lower bound"
"""Says what the sign means."""


def between(
    show: Callable[[float], str],
    value: float | None,
    bounds: Interval | None,
    unknown: str = UNKNOWN,
    text: str = "",
) -> str:
    """A figure with its bounds: ``"12 J (8 to 21)"``, ``"at most 25 J"``, ``"8 to 25 J"``, ``">12 J"``.

    Args:
        show: a number as text.
        value: the figure; None if it is unknown.
        bounds: None if there are none.
        unknown: stands where nothing is known.
        text: the figure as text where it has more than the number, such as a deviation.
    """
    if bounds is None:
        return unknown if value is None else text or show(value)
    low, high = show(bounds.low), None if bounds.high is None else show(bounds.high)
    if value is not None:
        return _around(text or show(value), show(value), low, high)
    if high is None:
        return f"at least {low}" if bounds.low else unknown
    if not bounds.low:
        return f"at most {high}"
    return span(low, high)


def with_half(value: str, half: str) -> str:
    """A figure and half of its interval, if that is not empty; the unit once where both have the same one."""
    if not half:
        return value
    same = _unit(value) == _unit(half) is not None
    return f"{value.partition(' ')[0] if same else value} ±{half}"


def span(low: str, high: str) -> str:
    """From one figure to another, the unit once where both have the same one."""
    if low == high:
        return high
    return f"{low.partition(' ')[0] if _unit(low) == _unit(high) is not None else low} to {high}"


def _around(text: str, value: str, low: str, high: str | None) -> str:
    if low == value:
        return text if high == value else f"{text} (at most {high})" if high else f"{AT_LEAST}{text}"
    if high is None:
        return f"{text} (at least {low})"
    # The unit once, where all have the same one.
    if _unit(low) == _unit(value) == _unit(high) is not None:
        low, high = low.partition(" ")[0], high.partition(" ")[0]
    return f"{text} ({low} to {high})"


def energy_between(total: EnergyTotal, bounds: Interval | None) -> str:
    """An energy with its bounds, of a part of the clients with those of all; "-" where nobody took part."""
    if not total.energy_clients:
        return MISSING
    partial = total.joules is not None and total.energy_known < total.energy_clients
    if bounds is None:
        return energy(total)
    if not partial:
        return between(show_joules, total.joules, bounds)
    return f"{energy(total)}, all {between(show_joules, None, bounds)}"


def bounded(
    one: Compared,
    show: Callable[[Any], str],
    figure: Figure,
    bounds: Bounds,
    nothing: str,
) -> str:
    """A figure with its bounds; of several runs, the means of all."""
    text, mean, values = one.show(show, figure, nothing), one.between(bounds), one.known(figure)
    return text if mean is None else between(show, fmean(values) if values else None, mean, nothing, text)


def _unit(text: str) -> str | None:
    """The unit of a number with one; None for other texts, such as hours and minutes."""
    number, _, unit = text.partition(" ")
    return unit if number and " " not in unit else None
