"""Figures with their bounds, as texts of a cell."""

from __future__ import annotations

from collections.abc import Callable

from edgefl.core.corners import Interval
from edgefl.report.tables import UNKNOWN

AT_LEAST = ">"
"""Stands before a figure that is a lower bound."""
LOWER_BOUND = f"{AT_LEAST} launch overhead unknown; time is a lower bound"
"""Says what the sign means."""


def between(
    show: Callable[[float], str], value: float | None, bounds: Interval | None, unknown: str = UNKNOWN
) -> str:
    """A figure with its bounds: ``"12 J (8 to 21)"``, ``"at most 25 J"``, ``"8 to 25 J"``, ``">12 J"``.

    Args:
        show: a number as text.
        value: the figure; None if it is unknown.
        bounds: None if there are none.
        unknown: stands where nothing is known.
    """
    if bounds is None:
        return unknown if value is None else show(value)
    low, high = show(bounds.low), None if bounds.high is None else show(bounds.high)
    if value is not None:
        return _around(show(value), low, high)
    if high is None:
        return f"at least {low}" if bounds.low else unknown
    if not bounds.low:
        return f"at most {high}"
    if low == high:
        return high
    return f"{low.partition(' ')[0] if _unit(low) == _unit(high) is not None else low} to {high}"


def _around(value: str, low: str, high: str | None) -> str:
    if low == value:
        return value if high == value else f"{value} (at most {high})" if high else f"{AT_LEAST}{value}"
    if high is None:
        return f"{value} (at least {low})"
    # The unit once, where all have the same one.
    if _unit(low) == _unit(value) == _unit(high) is not None:
        low, high = low.partition(" ")[0], high.partition(" ")[0]
    return f"{value} ({low} to {high})"


def _unit(text: str) -> str | None:
    """The unit of a number with one; None for other texts, such as hours and minutes."""
    number, _, unit = text.partition(" ")
    return unit if number and " " not in unit else None
