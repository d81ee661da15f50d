"""What times and energies depend on: each number from end to end of its range, and all of them together.

The sides of a comparison run on the same devices, so a number is the same for all of them at a time: an
overlap of two sides' intervals does not mean that either may be the lower. One by one, numbers are set to
both ends of their ranges while the others stay at their values. Where the order of two sides turns on the
way, bisection finds the value at which it does. All together are drawn by Latin hypercube sampling (McKay,
Beckman and Conover 1979), whose samples cover each number's range evenly, but seldom come near its ends in
several numbers at once. Two sides are therefore also compared where each number is at one of its ends: at
those that bring the two nearest to each other and farthest apart, as far as a search by coordinates finds.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias, TypeVar, get_args

import numpy as np
from pydantic import BaseModel

from edgefl.core.arrays import Floats
from edgefl.core.corners import Interval, known
from edgefl.core.devices import Board
from edgefl.core.documents import OPTIONAL
from edgefl.core.errors import UserError
from edgefl.core.sourced import Costs, Sourced, changed, sourced
from edgefl.planning.describe import shown_number

Records: TypeAlias = Mapping[str, Any]
"""Devices and links by owner; see ``Swept.owner``."""
Cell = TypeVar("Cell")

SAMPLES, SEED = 256, 0
"""Of the Latin hypercube."""
_BISECTIONS = 30
_MOST = 1000.0
"""A factor."""


class Side(NamedTuple):
    """One of what is compared, and its quantities by name on some devices and links; NaN for unknown ones."""

    name: str
    figures: Callable[[Records], Mapping[str, float]]


@dataclass(frozen=True)
class Effect:
    """What a number does: its range as text, and by quantity and side the figure at both ends of it."""

    number: str
    low: str
    value: str
    high: str
    figures: Mapping[str, Mapping[str, tuple[float, float]]]


@dataclass(frozen=True)
class Turn:
    """A value, as text, at which an order turns: as the number rises above it, or falls below."""

    number: str
    value: str
    above: bool


@dataclass(frozen=True)
class Verdict:
    """Whether one side has less of a quantity than another.

    Attributes:
        less, more: the sides, by their figures where each number has its own value.
        samples: how many samples know both.
        holds: the share of them in which the order is the same.
        ratio: the figure of ``more`` over that of ``less``, the least and the most that were found; None
            where that of ``less`` is nothing.
        together: whether the order turns where several numbers are at their ends.
        turns: the numbers that turn the order alone, those nearest to their own values first.
    """

    quantity: str
    less: str
    more: str
    samples: int
    holds: float
    ratio: Interval | None
    together: bool
    turns: Sequence[Turn]

    @property
    def robust(self) -> bool:
        """Whether nothing was found that turns it."""
        return self.holds == 1 and not self.together and not self.turns


@dataclass(frozen=True)
class Sensitivity:
    """What some figures depend on.

    Attributes:
        factor: by which assumed numbers were changed; 1 for intervals alone.
        samples, seed: of the Latin hypercube.
        figures: by quantity and side, where each number has its own value; None if unknown.
        between: the same, the least and the most over all samples.
        effects: of the numbers that change a figure, those that change it most first.
    """

    factor: float
    samples: int
    seed: int
    figures: Mapping[str, Mapping[str, float | None]]
    between: Mapping[str, Mapping[str, Interval | None]]
    effects: Sequence[Effect]
    verdicts: Sequence[Verdict]
    name: str | None = field(default=None, metadata=OPTIONAL)


def check_factor(factor: float) -> None:
    """Refuses a factor by which no number can be swept: below 1, or beyond any doubt about a number."""
    if not 1 <= factor <= _MOST:
        raise UserError(
            f"the factor must be between 1 and {_MOST:,.0f}, not {factor:g}", where="--sensitivity"
        )


def study(
    sides: Sequence[Side],
    quantities: Sequence[str],
    records: Records,
    factor: float,
    name: str | None = None,
) -> Sensitivity:
    """Sweeps numbers one by one and all together.

    Args:
        records: those of all sides.
        factor: by which assumed numbers are widened; 1 for intervals alone.
        name: of what is studied, if there are several.

    Raises:
        UserError: there is no number to sweep.
    """
    numbers = [one for owner, record in records.items() for one in swept(owner, record, factor)]
    if not numbers:
        raise UserError(
            "no number of these devices and links is an interval" + (" or assumed" if factor > 1 else ""),
            where="--sensitivity",
            hint="give a factor above 1 to change assumed numbers too" if factor == 1 else "",
        )
    found = _Study(sides, quantities, records, numbers)
    every = np.concatenate([found.here[None], found.drawn, *found.ends])

    def table(of: Callable[[int, int], Cell]) -> dict[str, dict[str, Cell]]:
        return {
            quantity: {side.name: of(n, q) for n, side in enumerate(sides)}
            for q, quantity in enumerate(quantities)
        }

    effects = []
    for number, end in zip(numbers, found.ends, strict=True):
        low, value, high = (_shown(number, one) for one in (number.low, number.value, number.high))
        figures = table(lambda n, q, end=end: (float(end[0, n, q]), float(end[1, n, q])))  # type: ignore[misc]
        effects.append(Effect(_named(number), low, value, high, figures))
    pairs = list(combinations(range(len(sides)), 2))
    verdicts = (found.verdict(q, pair) for q in range(len(quantities)) for pair in pairs)
    return Sensitivity(
        factor=factor,
        samples=len(found.drawn),
        seed=SEED,
        figures=table(lambda n, q: known(found.here[n, q])),
        between=table(lambda n, q: _range(every[~np.isnan(every[:, n, q]), n, q].tolist())),
        effects=sorted((one for one in effects if _strongest(one)), key=_strongest, reverse=True),
        verdicts=[one for one in verdicts if one],
        name=name,
    )


def _shown(number: "Swept", value: Any) -> str:
    """A value as text; of a record, what differs between its ends."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        alike = [key for key in fields if getattr(number.low, key) == getattr(number.high, key)]
        optional = {key: fields[key].get_default() for key in alike if not fields[key].is_required()}
        value = value.model_copy(update=optional)
    return shown_number(number.name, number.number, value)


def _named(number: "Swept") -> str:
    return f"{number.owner} {number.name}"


def _range(figures: Sequence[float]) -> Interval | None:
    return Interval(min(figures), max(figures)) if figures else None


def strength(effect: Effect, quantity: str) -> float:
    """The most by which a number changes a quantity of some side: the logarithm of a ratio.

    It is 0 for nothing, and infinite from or to 0.
    """
    ends = effect.figures[quantity].values()
    ratios = (
        abs(math.log(high / low)) if low > 0 and high > 0 else math.inf
        for low, high in ends
        if low != high and not math.isnan(low + high)
    )
    return max((ratio for ratio in ratios if ratio > _LEAST), default=0.0)


def _strongest(effect: Effect) -> float:
    return max(strength(effect, quantity) for quantity in effect.figures)


# Changes below this are roundings.
_LEAST = 1e-6


class _Study:
    """All sides' figures at points of the numbers' ranges: (sides, quantities) at each.

    Attributes:
        here: where each number has its own value.
        ends: with each number at both ends of its range, (numbers, 2, sides, quantities).
        drawn: at the samples, (samples, sides, quantities).
    """

    def __init__(
        self, sides: Sequence[Side], quantities: Sequence[str], records: Records, numbers: "Sequence[Swept]"
    ) -> None:
        # Loads much of SciPy, which no other command needs.
        from scipy.stats.qmc import LatinHypercube

        self._sides, self._quantities, self._numbers = sides, quantities, numbers
        self._records = {owner: changed(record, _without_bounds) for owner, record in records.items()}
        self._center = {owner: self._record(owner, {}) for owner in records}
        count, shape = len(numbers), (-1, len(sides), len(quantities))
        ends = [self._at({place: share}) for place in range(count) for share in (-1.0, 1.0)]
        self.here, self.ends = self._at({}), np.array(ends).reshape(count, 2, *shape[1:])
        shares = 2 * LatinHypercube(count, seed=SEED).random(SAMPLES) - 1
        self.drawn = np.array([self._at(dict(enumerate(each))) for each in shares.tolist()]).reshape(shape)

    def _at(self, shares: Mapping[int, float], asked: Collection[int] | None = None) -> Floats:
        """The figures with some numbers at other places of their ranges, their ``shares``, see ``Swept.at``.

        Only the sides that are ``asked`` have figures, others NaN; None for all.
        """
        moved = {self._numbers[place].owner for place in shares}
        found = {
            owner: self._record(owner, shares) if owner in moved else record
            for owner, record in self._center.items()
        }
        point = np.full((len(self._sides), len(self._quantities)), math.nan)
        for place in range(len(self._sides)) if asked is None else asked:
            figures = self._sides[place].figures(found)
            point[place] = [figures[quantity] for quantity in self._quantities]
        return point

    def _record(self, owner: str, shares: Mapping[int, float]) -> Any:
        """A device or link with its numbers at their places; no idle power is above the active one."""
        fixed = {
            number.name: number.fixed(shares.get(place, 0.0))
            for place, number in enumerate(self._numbers)
            if number.owner == owner
        }
        record = changed(self._records[owner], fixed.get)
        if not isinstance(record, Board):
            return record
        idle, active = record.power.idle, record.power.active
        if idle.value is None or active.value is None or idle.value <= active.value:
            return record
        lower = idle.model_copy(update={"value": min(idle.value, active.value)})
        return record.model_copy(update={"power": record.power.model_copy(update={"idle": lower})})

    def verdict(self, q: int, pair: tuple[int, int]) -> Verdict | None:
        """Which of two sides has less, and what turns that; None where one is unknown, or both are alike."""
        one, other = self.here[list(pair), q].tolist()
        if not one < math.inf or not other < math.inf:
            return None
        first, second = pair if one <= other else pair[::-1]

        def excess(point: Floats) -> float:
            return float(point[second, q] - point[first, q])

        if not excess(self.here) > 0:
            return None

        def apart(point: Floats) -> float:
            """How far the second side is above the first, from -1 to 1; grows with their ratio."""
            return excess(point) / (float(point[second, q] + point[first, q]) or 1.0)

        samples = [point for point in self.drawn if not math.isnan(excess(point))]
        nearest = self._vertex(pair, lambda point: -apart(point), climbs=True)
        farthest = self._vertex(pair, apart)
        every = [self.here, *samples, *(point for end in self.ends for point in end), nearest, farthest]
        ratios = [float(point[second, q] / point[first, q]) for point in every if point[first, q] > 0]
        turns = [
            self._turn(place, sign, excess)
            for place, end in enumerate(self.ends)
            for sign, point in zip((-1.0, 1.0), end, strict=True)
            if excess(point) < 0
        ]
        return Verdict(
            quantity=self._quantities[q],
            less=self._sides[first].name,
            more=self._sides[second].name,
            samples=len(samples),
            holds=sum(excess(point) > 0 for point in samples) / len(samples) if samples else 1.0,
            ratio=_range(ratios),
            together=excess(nearest) < 0,
            turns=[turn for _, turn in sorted(turns, key=lambda one: one[0])],
        )

    def _vertex(
        self, pair: tuple[int, int], figure: Callable[[Floats], float], *, climbs: bool = False
    ) -> Floats:
        """Where a figure is greatest of the points at which each number is at an end of its range.

        Each number is at the end at which the figure is greater while the others stay at their values. If it
        ``climbs``, numbers then go to their other ends while that makes the figure greater, until it is above
        0.
        """
        alone = [(figure(low), figure(high)) for low, high in self.ends]
        ends = {place: 1.0 if high > low else -1.0 for place, (low, high) in enumerate(alone) if high != low}
        best, moved = self._at(ends, pair), climbs
        while moved and figure(best) <= 0:
            moved = False
            for place, share in tuple(ends.items()):
                other = self._at({**ends, place: -share}, pair)
                if figure(other) > figure(best) + _LEAST:
                    best, ends[place], moved = other, -share, True
        return best

    def _turn(self, place: int, sign: float, excess: Callable[[Floats], float]) -> tuple[float, Turn]:
        """Where on the way from a number's own value to an end the order turns, and how far that is."""
        before, after = 0.0, 1.0
        for _ in range(_BISECTIONS):
            middle = (before + after) / 2
            if excess(self._at({place: sign * middle})) > 0:
                before = middle
            else:
                after = middle
        number = self._numbers[place]
        value = between(number.value, number.high if sign > 0 else number.low, after)
        return after, Turn(_named(number), _shown(number, value), above=sign > 0)


def _without_bounds(_: str, number: Sourced[Any]) -> Sourced[Any]:
    """A number that has a value, without its bounds."""
    return number if number.value is None else number.model_copy(update={"low": None, "high": None})


def _by_number(of: Callable[..., Any], *values: Any) -> Any:
    """A function of numbers; of records, number by number."""
    first = values[0]
    if not isinstance(first, BaseModel):
        return of(*values)
    names = type(first).model_fields
    return first.model_copy(update={key: of(*(getattr(one, key) for one in values)) for key in names})


def scaled(number: Sourced[Any], value: Any, factor: float) -> Any:
    """A value of a number's kind times a factor, as near to it as the kind allows."""
    if isinstance(value, BaseModel):
        return _by_number(lambda one: one * factor, value)
    (kind,) = type(number).__pydantic_generic_metadata__["args"]
    found = value * factor
    for one in (one for note in get_args(kind)[1:] for one in getattr(note, "metadata", ())):
        found = min(max(found, getattr(one, "ge", -math.inf)), getattr(one, "le", math.inf))
        if found >= (limit := getattr(one, "lt", math.inf)):
            # What is left below the limit shrinks by the factor.
            found = limit - (limit - value) / factor
    return round(found) if isinstance(value, int) else found


class Swept(NamedTuple):
    """A number with the range in which it is swept.

    Attributes:
        owner: the device's name, or the link's behind the word "link".
        name: its dotted name there.
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
    """A number between two others, by ratios where both are above 0; a whole one stays whole."""

    def number(one: Any, other: Any) -> Any:
        found = one * (other / one) ** share if one > 0 and other > 0 else one + (other - one) * share
        return round(found) if isinstance(one, int) else found

    return _by_number(number, one, other)


def swept(owner: str, record: BaseModel, factor: float) -> Iterator[Swept]:
    """The numbers of a device or link that are swept.

    They are the intervals, from end to end, and with a factor above 1 those that are assumed, from a
    factor-th to the factor-fold, or to the interval's ends if these lie farther out. A number of which only
    the least is known is not swept, but for an idle power, which is at most the active one.
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
        low, high = _by_number(min, low, ends[0]), _by_number(max, high, ends[1])
    return low, high
