"""The two corners of a device or link whose numbers are intervals.

Times and energies grow or shrink with each number (``Costs``), whatever the others are. So of all numbers
within their intervals, one choice costs least and one costs most: every number at the end of its interval
that costs less, or more. What is computed at these two corners bounds all else.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar

from pydantic import BaseModel

from edgefl.core.sourced import Costs, Sourced, sourced

Record = TypeVar("Record", bound=BaseModel)


class Corner(Enum):
    """Which end of every interval."""

    CHEAP = "cheap"
    COSTLY = "costly"


def has_interval(record: BaseModel) -> bool:
    """Whether a number of a record is known by its bounds."""
    return any(number.is_interval for _, number in sourced(record))


def at_corner(record: Record, corner: Corner) -> Record:
    """A record with every number at one end of its interval.

    A number without the bound keeps its value. One that has neither is as small as it can be at the cheap
    corner, 0, if costs grow with it; else it is unknown.
    """
    copied: Record = _copied(record, corner)
    return copied


def _copied(value: Any, corner: Corner) -> Any:
    if isinstance(value, Sourced):
        return _end(value, corner)
    if isinstance(value, BaseModel):
        parts = {key: _copied(getattr(value, key), corner) for key in type(value).model_fields}
        return value.model_copy(update=parts)
    if isinstance(value, dict):
        return {key: _copied(one, corner) for key, one in value.items()}
    return tuple(_copied(one, corner) for one in value) if isinstance(value, tuple) else value


def _end(number: Sourced[Any], corner: Corner) -> Sourced[Any]:
    costs = number.costs()
    if costs is None:
        return number
    low = (corner is Corner.CHEAP) == (costs is Costs.MORE)
    bound = number.low if low else number.high
    value = number.value if bound is None else bound
    if value is None and low and costs is Costs.MORE and not isinstance(number.high, BaseModel):
        value = 0.0
    status = "unknown" if value is None else "assumed" if number.status == "unknown" else number.status
    return number.model_copy(update={"low": None, "value": value, "high": None, "status": status})
