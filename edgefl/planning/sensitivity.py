"""What times and energies depend on: each number from end to end of its range, and all of them together.

The sides of a comparison run on the same devices, so a number is the same for all of them at a time: an
overlap of two sides' intervals does not mean that either may be the lower. One by one, numbers are set to
both ends of their ranges while the others stay at their values. Where the order of two sides turns on the
way, bisection finds the value at which it does. All together are drawn by Latin hypercube sampling (McKay,
Beckman and Conover 1979), whose samples cover each number's range evenly, but seldom come near its ends in
several numbers at once. Two sides are therefore also compared where each number is at one of its ends: at
those that bring the two nearest to each other and farthest apart, as far as a search by coordinates finds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

from pydantic import BaseModel

from edgefl.core.corners import Interval
from edgefl.core.devices import Board
from edgefl.core.documents import OPTIONAL
from edgefl.core.errors import UserError
from edgefl.core.ledger import known
from edgefl.core.sourced import Sourced, changed, replaced
from edgefl.core.sweeps import Swept, between, least, swept
from edgefl.planning.describe import shown_number

Records: TypeAlias = Mapping[str, Any]
"""Devices and links by owner; see ``Swept.owner``."""

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
        figures: by quantity and side, the figure where each number has its own value; None if unknown.
        between: the same, the least and the most over all samples.
        effects: of the numbers that change a figure, those that change it most first.
        verdicts: for each quantity and pair of sides.
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
    """Refuses a factor by which no number can be swept.

    Raises:
        UserError: it is below 1, or beyond any doubt about a number.
    """
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
        sides: what is compared.
        quantities: the names of their figures.
        records: the devices and links of all sides, by owner.
        factor: by which assumed numbers are widened; 1 for intervals alone.
        name: of what is studied, if there are several.

    Raises:
        UserError: the factor is below 1, or there is no number to sweep.
    """
    check_factor(factor)
    numbers = [one for owner, record in records.items() for one in swept(owner, record, factor)]
    if not numbers:
        raise UserError(
            "no number of these devices and links is an interval" + (" or assumed" if factor > 1 else ""),
            where="--sensitivity",
            hint="give a factor above 1 to change assumed numbers too" if factor == 1 else "",
        )
    space = _Space(sides, records, numbers)
    ends = [(space.at({place: -1.0}), space.at({place: 1.0})) for place in range(len(numbers))]
    # Loads much of SciPy, which no other command needs.
    from scipy.stats.qmc import LatinHypercube

    shares = 2 * LatinHypercube(len(numbers), seed=SEED).random(SAMPLES) - 1
    here, drawn = space.at({}), [space.at(dict(enumerate(each))) for each in shares.tolist()]
    effects = [_effect(number, end, quantities, sides) for number, end in zip(numbers, ends, strict=True)]
    pairs = list(combinations(range(len(sides)), 2))
    verdicts = (_verdict(space, one, pair, here, ends, drawn) for one in quantities for pair in pairs)
    every, names = [here, *drawn, *(point for end in ends for point in end)], [side.name for side in sides]
    return Sensitivity(
        factor=factor,
        samples=len(drawn),
        seed=SEED,
        figures={one: {name: known(here[n][one]) for n, name in enumerate(names)} for one in quantities},
        between={one: {name: _range(every, n, one) for n, name in enumerate(names)} for one in quantities},
        effects=sorted((one for one in effects if _strongest(one)), key=_strongest, reverse=True),
        verdicts=[one for one in verdicts if one],
        name=name,
    )


Figures: TypeAlias = Sequence[Mapping[str, float]]
"""By side, then by quantity."""


class _Space:
    """All sides' figures at any point of the numbers' ranges."""

    def __init__(self, sides: Sequence[Side], records: Records, numbers: Sequence[Swept]) -> None:
        self.sides, self.numbers = sides, numbers
        self._records = {owner: changed(record, _without_bounds) for owner, record in records.items()}
        self._center = {owner: self._record(owner, {}) for owner in records}

    def at(self, shares: Mapping[int, float], asked: Collection[int] | None = None) -> Figures:
        """The figures with some numbers at other places of their ranges, see ``Swept.at``.

        Args:
            shares: the places of these numbers.
            asked: the sides that have figures; None for all.
        """
        moved = {self.numbers[place].owner for place in shares}
        found = {
            owner: self._record(owner, shares) if owner in moved else record
            for owner, record in self._center.items()
        }
        return [
            side.figures(found) if asked is None or place in asked else {}
            for place, side in enumerate(self.sides)
        ]

    def _record(self, owner: str, shares: Mapping[int, float]) -> Any:
        """A device or link with its numbers at their places."""
        fixed = {
            number.name: number.fixed(shares.get(place, 0.0))
            for place, number in enumerate(self.numbers)
            if number.owner == owner
        }
        return _consistent(replaced(self._records[owner], fixed))


def _without_bounds(_: str, number: Sourced[Any]) -> Sourced[Any]:
    """A number that has a value, without its bounds."""
    return number if number.value is None else number.model_copy(update={"low": None, "high": None})


def _consistent(record: Any) -> Any:
    """A record of which no idle power is above the active one."""
    if not isinstance(record, Board):
        return record
    idle, active = record.power.idle, record.power.active
    if idle.value is None or active.value is None or idle.value <= active.value:
        return record
    lower = idle.model_copy(update={"value": least(idle.value, active.value)})
    return record.model_copy(update={"power": record.power.model_copy(update={"idle": lower})})


def _effect(
    number: Swept, ends: tuple[Figures, Figures], quantities: Sequence[str], sides: Sequence[Side]
) -> Effect:
    low, high = ends
    figures = {
        one: {side.name: (low[n][one], high[n][one]) for n, side in enumerate(sides)} for one in quantities
    }
    texts = [_shown(number, value) for value in (number.low, number.value, number.high)]
    return Effect(_named(number), *texts, figures)


def _shown(number: Swept, value: Any) -> str:
    """A value as text; of a record, what differs between its ends."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        alike = [key for key in fields if getattr(number.low, key) == getattr(number.high, key)]
        optional = {key: fields[key].get_default() for key in alike if not fields[key].is_required()}
        value = value.model_copy(update=optional)
    return shown_number(number.name, number.number, value)


def _named(number: Swept) -> str:
    return f"{number.owner} {number.name}"


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


def _range(points: Sequence[Figures], side: int, quantity: str) -> Interval | None:
    known = [point[side][quantity] for point in points if not math.isnan(point[side][quantity])]
    return Interval(min(known), max(known)) if known else None


def _verdict(
    space: _Space,
    quantity: str,
    pair: tuple[int, int],
    here: Figures,
    ends: Sequence[tuple[Figures, Figures]],
    drawn: Sequence[Figures],
) -> Verdict | None:
    """Which of two sides has less, and what turns that; None where a figure is unknown, or both are alike."""
    if not here[pair[0]][quantity] < math.inf or not here[pair[1]][quantity] < math.inf:
        return None
    first, second = pair if here[pair[0]][quantity] <= here[pair[1]][quantity] else pair[::-1]

    def excess(point: Figures) -> float:
        """How much more the second side has."""
        return point[second][quantity] - point[first][quantity]

    if not excess(here) > 0:
        return None

    def apart(point: Figures) -> float:
        """How far the second side is above the first, from -1 to 1; grows with their ratio."""
        return excess(point) / ((point[second][quantity] + point[first][quantity]) or 1.0)

    samples = [point for point in drawn if not math.isnan(excess(point))]
    nearest = _vertex(space, pair, ends, lambda point: -apart(point), climbs=True)
    farthest = _vertex(space, pair, ends, apart)
    every = [here, *samples, *(point for end in ends for point in end), nearest, farthest]
    ratios = [
        point[second][quantity] / point[first][quantity] for point in every if point[first][quantity] > 0
    ]
    turns = [
        _turn(space, place, sign, excess)
        for place, end in enumerate(ends)
        for sign, point in zip((-1.0, 1.0), end, strict=True)
        if excess(point) < 0
    ]
    return Verdict(
        quantity=quantity,
        less=space.sides[first].name,
        more=space.sides[second].name,
        samples=len(samples),
        holds=sum(excess(point) > 0 for point in samples) / len(samples) if samples else 1.0,
        ratio=Interval(min(ratios), max(ratios)) if ratios else None,
        together=excess(nearest) < 0,
        turns=[turn for _, turn in sorted(turns, key=lambda one: one[0])],
    )


def _vertex(
    space: _Space,
    pair: tuple[int, int],
    ends: Sequence[tuple[Figures, Figures]],
    figure: Callable[[Figures], float],
    *,
    climbs: bool = False,
) -> Figures:
    """Where a figure is greatest of the points at which each number is at an end of its range.

    Each number is at the end at which the figure is greater while the others stay at their values. If it
    ``climbs``, numbers then go to their other ends while that makes the figure greater, until it is above 0.
    """
    alone = [(figure(low), figure(high)) for low, high in ends]
    shares = {place: 1.0 if high > low else -1.0 for place, (low, high) in enumerate(alone) if high != low}
    best, moved = space.at(shares, pair), climbs
    while moved and figure(best) <= 0:
        moved = False
        for place, share in tuple(shares.items()):
            other = space.at({**shares, place: -share}, pair)
            if figure(other) > figure(best) + _LEAST:
                best, shares[place], moved = other, -share, True
    return best


def _turn(space: _Space, place: int, sign: float, excess: Callable[[Figures], float]) -> tuple[float, Turn]:
    """Where on the way from a number's own value to an end the order turns, and how far that is."""
    before, after = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (before + after) / 2
        if excess(space.at({place: sign * middle})) > 0:
            before = middle
        else:
            after = middle
    number = space.numbers[place]
    value = between(number.value, number.high if sign > 0 else number.low, after)
    return after, Turn(_named(number), _shown(number, value), above=sign > 0)
