"""The two corners of a device or link whose numbers are intervals.

Times and energies grow or shrink with each number (``Costs``), whatever the others are. So of all numbers
within their intervals, one choice costs least and one costs most: every number at the end of its interval
that costs less, or more. What is computed at these two corners bounds all else.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import BaseModel

from edgefl.core.devices import Board
from edgefl.core.sourced import Costs, Record, Sourced, changed, sourced


def known(figure: float | None) -> float | None:
    """A figure of an array; None for NaN, which stands for an unknown one."""
    return None if figure is None or math.isnan(figure) else float(figure)


class Interval(NamedTuple):
    """The least and the most that a figure can be; None where nothing bounds it from above."""

    low: float
    high: float | None

    @classmethod
    def of(cls, low: float | None, high: float | None) -> "Interval":
        """The interval between two corners' figures; one that is unknown, None or NaN, bounds nothing."""
        return cls(known(low) or 0.0, known(high))


def together(intervals: Iterable[Interval]) -> Interval:
    """The bounds of a sum, whose terms are alike at one corner or the other."""
    lows, highs = zip((0.0, 0.0), *intervals, strict=True)
    return Interval(sum(lows), None if None in highs else sum(highs))


CORNERS = ("cheap", "costly")


def has_interval(record: BaseModel) -> bool:
    """Whether a number of a record is known by its bounds."""
    return any(number.is_interval for _, number in sourced(record))


def corners(record: Record) -> tuple[Record, Record] | None:
    """A record at its cheap and at its costly corner; None where neither differs from it."""
    ends = at_corners(record)
    return None if ends == (record, record) else ends


def at_corners(record: Record) -> tuple[Record, Record]:
    """A record with every number at the end of its interval that costs least, and one at the other ends.

    A number without the bound keeps its value. One that has neither is 0 at the cheap corner, if costs grow
    with it; else it is unknown. An idle power is at most the active one.
    """
    return _at(record, Costs.MORE), _at(record, Costs.LESS)


def _at(record: Record, low: Costs) -> Record:
    """With the lower bounds of the numbers that have this effect on costs, and others' upper ones."""
    copied = changed(record, lambda _, number: _end(number, low))
    if isinstance(copied, Board) and copied.power.idle.value is None:
        power = copied.power.model_copy(update={"idle": copied.power.active})
        return copied.model_copy(update={"power": power})
    return copied


def _end(number: Sourced[Any], low: Costs) -> Sourced[Any]:
    costs = number.costs()
    if costs is None:
        return number
    bound = number.low if costs is low else number.high
    value = number.value if bound is None else bound
    if value is None and costs is low is Costs.MORE:
        value = number.nothing()
    status = "unknown" if value is None else "assumed" if number.status == "unknown" else number.status
    return number.model_copy(update={"low": None, "value": value, "high": None, "status": status})
