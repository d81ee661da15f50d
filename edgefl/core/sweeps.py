"""Devices and links with some of their numbers changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel

from edgefl.core.devices import Board
from edgefl.core.sourced import Costs, Sourced, sourced


def scaled(number: Sourced[Any], value: Any, factor: float) -> Any:
    """A value of a number's kind times a factor, as near to it as the kind allows.

    Of a record, all numbers are multiplied.
    """
    (kind,) = type(number).__pydantic_generic_metadata__["args"]
    if isinstance(value, BaseModel):
        return value.model_copy(
            update={key: getattr(value, key) * factor for key in type(value).model_fields}
        )
    return _allowed(kind, value, factor)


def _allowed(kind: Any, value: float, factor: float) -> float:
    found = value * factor
    for name, limit in _limits(kind):
        if name == "ge":
            found = max(found, limit)
        elif name == "le":
            found = min(found, limit)
        elif name == "lt" and found >= limit:
            # What is left below the limit shrinks by the factor.
            found = limit - (limit - value) / factor
    return round(found) if _plain(kind) is int else found


def _limits(kind: Any) -> Iterator[tuple[str, float]]:
    """The least and the most that numbers of a kind may be."""
    for note in get_args(kind)[1:] if get_origin(kind) is Annotated else ():
        for one in getattr(note, "metadata", ()):
            yield from ((name, getattr(one, name)) for name in ("ge", "le", "lt") if hasattr(one, name))


def _plain(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


class Swept(NamedTuple):
    """A number with the range in which it is swept.

    Attributes:
        owner: the device's name, or the link's behind the word "link".
        name: its dotted name there.
        number: the number.
        low, value, high: its least, its own, or one between the ends where it has none, and its most.
    """

    owner: str
    name: str
    number: Sourced[Any]
    low: Any
    value: Any
    high: Any

    def at(self, share: float) -> Any:
        """The value at -1, the least, to 0, its own, to 1, the most."""
        return between(self.value, self.high if share > 0 else self.low, abs(share))

    def fixed(self, share: float) -> Sourced[Any]:
        """The number at a share of its range, without bounds."""
        known = {"low": None, "value": self.at(share), "high": None, "status": "assumed"}
        return self.number.model_copy(update=known)


def between(one: Any, other: Any, share: float) -> Any:
    """A number between two others, by ratios where both are above 0; of records, number by number.

    A whole one stays whole.
    """
    if isinstance(one, BaseModel):
        names = type(one).model_fields
        return one.model_copy(
            update={name: between(getattr(one, name), getattr(other, name), share) for name in names}
        )
    found = one * (other / one) ** share if one > 0 and other > 0 else one + (other - one) * share
    return round(found) if isinstance(one, int) else found


def swept(owner: str, record: BaseModel, factor: float) -> Iterator[Swept]:
    """The numbers of a device or link that are swept.

    They are the intervals, from end to end, and with a factor those that are assumed, from a factor-th to the
    factor-fold, or to the interval's ends if these lie farther out. A number of which only the least is known
    is not swept, but for an idle power, which is at most the active one.

    Args:
        owner: its name.
        record: the device or link.
        factor: 1 or above; 1 for intervals alone.
    """
    for name, number in sourced(record):
        if number.costs() is None or name.partition(".")[0] in _WITHOUT_EFFECT:
            continue
        low, high = _ends(number, factor)
        if name == "power.idle" and isinstance(record, Board) and low is not None and high is None:
            high = _ends(record.power.active, factor)[1]
        if low is None or high is None or low == high:
            continue
        value = number.value if number.value is not None else between(low, high, 0.5)
        yield Swept(owner, name, number, low, value, high)


# Neither times nor energies of training depend on them.
_WITHOUT_EFFECT = {"memory", "reserved_memory", "battery", "inference", "throttling"}


def _ends(number: Sourced[Any], factor: float) -> tuple[Any, Any]:
    """The least and the most that a number can be; None where nothing says."""
    low = number.value if number.low is None else number.low
    high = number.value if number.high is None else number.high
    if low is None and number.costs() is Costs.MORE:
        low = number.nothing()
    if number.status == "assumed" and number.value is not None:
        ends = (scaled(number, number.value, 1 / factor), scaled(number, number.value, factor))
        low, high = least(low, ends[0]), most(high, ends[1])
    return low, high


def least(one: Any, other: Any) -> Any:
    """The smaller of two numbers; of records, number by number."""
    return _chosen(min, one, other)


def most(one: Any, other: Any) -> Any:
    """The larger of two numbers; of records, number by number."""
    return _chosen(max, one, other)


def _chosen(choose: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    if not isinstance(one, BaseModel):
        return choose(one, other)
    names = type(one).model_fields
    return one.model_copy(update={name: choose(getattr(one, name), getattr(other, name)) for name in names})
