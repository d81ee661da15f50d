"""Runs that differ in nothing but their seeds, taken together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from edgefl.analysis.estimates import ROUNDING, estimate
from edgefl.core.corners import Interval, together
from edgefl.core.documents import document
from edgefl.core.units import show_bytes, show_flops, show_grams, show_joules, show_seconds, show_share
from edgefl.show.settings import canonical, dotted
from edgefl.show.summary import Summary
from edgefl.show.table import MISSING

Figure = Callable[[Summary], float | None]
Bounds = Callable[[Summary], Interval | None]
Show = Callable[[Any], str]
Better = Literal["higher", "lower", ""]
_SEED = "seed"

SHOWS: Mapping[str, Show] = {
    "share": partial(show_share, digits=1),
    "s": show_seconds,
    "B": show_bytes,
    "J": show_joules,
    "FLOP": show_flops,
    "g": show_grams,
}
"""A number as text, by the unit of its row."""


class Spread(NamedTuple):
    """A figure of several runs.

    Attributes:
        mean: of the runs that have it.
        deviation_over_seeds: the standard deviation of a sample (n - 1); None if only one run has it.
        runs: how many have it.
        interval_95: of the mean; see ``estimates``. None if only one run has it.
    """

    mean: float
    deviation_over_seeds: float | None
    runs: int
    interval_95: Interval | None


@dataclass(frozen=True)
class Average:
    """Runs that differ in nothing but their seeds.

    Attributes:
        name: what their names have in common.
        seeds: theirs.
        runs: their directories.
        figures: every number of their summaries, by dotted key.
    """

    name: str
    seeds: Sequence[int]
    runs: Sequence[str]
    figures: Mapping[str, Spread]


@dataclass(frozen=True)
class Compared:
    """A run, or several that differ in nothing but their seeds.

    Attributes:
        name: a heading.
        runs: one or more.
    """

    name: str
    runs: tuple[Summary, ...]

    @property
    def first(self) -> Summary:
        """Any of the runs, for what all have in common."""
        return self.runs[0]

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the runs have in common; their seeds as a list."""
        common = dict(self.first.settings or {})
        if len(self.runs) > 1:
            common[_SEED] = [run.seed for run in self.runs]
        return common

    def show(self, show: Show, figure: Figure, nothing: str = MISSING) -> str:
        """A figure, or its mean and half of its 95% interval over the runs that have it.

        Args:
            show: a number as text.
            figure: the figure; None if a run has none.
            nothing: stands where no run has it.
        """
        values = self.known(figure)
        if not values:
            return nothing
        found = estimate(values)
        half, text = found.half or 0.0, show(found.mean)
        if half > ROUNDING * abs(found.mean):
            text += f" ±{show(half)}"
        return text + (f" ({found.values} of {len(self.runs)})" if found.values < len(self.runs) else "")

    def known(self, figure: Figure) -> list[float]:
        """A figure of the runs that have it."""
        return [value for run in self.runs if (value := figure(run)) is not None]

    def between(self, bounds: Bounds) -> Interval | None:
        """The means of the runs' bounds; None if a run has none."""
        found = [known for run in self.runs if (known := bounds(run)) is not None]
        if len(found) < len(self.runs):
            return None
        low, high = together(found)
        return Interval(low / len(found), None if high is None else high / len(found))

    def all(self, text: Callable[[Summary], str]) -> str:
        """What the runs have, each text once."""
        return "; ".join(dict.fromkeys(filter(None, map(text, self.runs))))


class Value(NamedTuple):
    """A figure of a run, or of several that differ in nothing but their seeds.

    Attributes:
        mean: of the runs that have it.
        runs: how many have it.
        between: the bounds; of several runs, the means of all. None where a run has none.
        interval_95: of the mean over seeds; None if only one run has it.
    """

    mean: float
    runs: int
    between: Interval | None
    interval_95: Interval | None


@dataclass(frozen=True)
class Row:
    """A figure of each run.

    Attributes:
        label: its name.
        cell: it as text.
        figure: it as a number in base units; None of a row of several figures, or of words.
        unit: "s", "B", "FLOP", "J", "g" (of CO2e), "share" (of 1), "days", a measure's, or empty for a count.
        better: which one is ahead; empty where none is better than another.
        key: its dotted place in a run's record of ``edgefl compare --json``, or several with `` + `` or
            `` - `` between them, of which it is the sum or the difference.
        bounds: of the figure; None where it has none.
        part: the row of what is known of it, where that is not all clients'.
    """

    label: str
    cell: Callable[[Compared], str]
    figure: Figure | None = None
    unit: str = ""
    better: Better = ""
    key: str = ""
    bounds: Bounds = lambda _: None
    part: Row | None = None

    def value(self, one: Compared) -> Value | None:
        """The figure over one's runs; None where none of them has it."""
        found = [] if self.figure is None else one.known(self.figure)
        if not found:
            return None
        over_seeds = spread(found)
        return Value(over_seeds.mean, over_seeds.runs, one.between(self.bounds), over_seeds.interval_95)

    def plain(self, one: Compared) -> str:
        """The figure without its bounds; where there is none, or its unit is another's, the cell."""
        if self.figure is None or self.unit not in SHOWS or not one.known(self.figure):
            return self.cell(one)
        return one.show(SHOWS[self.unit], self.figure)


def amount(
    label: str,
    show: Show,
    figure: Figure,
    unit: str,
    better: Better = "lower",
    *,
    key: str,
) -> Row:
    """The row of a number that all clients have; its arguments are the attributes of ``Row``."""
    return Row(label, lambda one: one.show(show, figure), figure, unit, better, key)


def mean(one: Compared, figure: Figure) -> float | None:
    """A figure's mean over the runs that have it; None where none has it."""
    values = one.known(figure)
    return spread(values).mean if values else None


def spread(values: Sequence[float]) -> Spread:
    """The mean of at least one value, with its deviation and its interval."""
    mean, half, deviation, count = estimate(values)
    bounds = None if half is None else Interval(mean - half, mean + half)
    return Spread(mean, deviation, count, bounds)


def seeds_together(runs: Sequence[Summary]) -> list[Compared]:
    """The runs, those that are done and differ in nothing but their seeds together, under names that differ.

    Of runs with the same seed too, the first ones are taken together, then the second ones, and so on.
    """
    found: dict[Any, list[Summary]] = {}
    for place, run in enumerate(runs):
        found.setdefault(_key(run, place, found), []).append(run)
    return _named_apart([Compared(_common_name(group), tuple(group)) for group in found.values()])


def _key(run: Summary, place: int, found: Mapping[Any, Sequence[Summary]]) -> Any:
    if run.settings is None or run.status != "done":
        return place
    alike = canonical({**run.settings, _SEED: None}), run.fleet_id, tuple(sorted(run.accuracy))
    number = 0
    while any(other.seed == run.seed for other in found.get((alike, number), ())):
        number += 1
    return alike, number


def _common_name(runs: Sequence[Summary]) -> str:
    first, *others = (run.name.split(", ") for run in runs)
    return ", ".join(part for part in first if all(part in other for other in others)) or runs[0].method


def _named_apart(compared: Sequence[Compared]) -> list[Compared]:
    """Those of one name with their directories and seeds."""
    names = Counter(one.name for one in compared)
    return [
        one if names[one.name] == 1 else replace(one, name=f"{one.name}\n{_source(one)}") for one in compared
    ]


def _source(one: Compared) -> str:
    groups = list(dict.fromkeys(map(_group, one.runs)))
    more = f" and {len(groups) - 1} more" if len(groups) > 1 else ""
    return f"{groups[0]}{more}" + (f", seed {one.first.seed}" if len(one.runs) == 1 else "")


def _group(run: Summary) -> str:
    """The folder that distinguishes runs of one name."""
    folder = Path(run.run_dir)
    return folder.parent.name if re.match(r"\d\d+-", folder.name) else folder.name


def averages(compared: Sequence[Compared]) -> list[Average]:
    """The averages of all that are more than one run."""
    return [
        Average(
            one.name, [run.seed for run in one.runs], [run.run_dir for run in one.runs], spreads(one.runs)
        )
        for one in compared
        if len(one.runs) > 1
    ]


def numbers(run: Summary) -> dict[str, float]:
    """Every number of a run's record but for its seed and its settings, by dotted key."""
    record = dotted(document(replace(run, settings=None)))
    return {key: value for key, value in record.items() if _is_number(value) and key != _SEED}


def spreads(runs: Sequence[Summary]) -> dict[str, Spread]:
    """The numbers of several runs, each of those that have it."""
    each = list(map(numbers, runs))
    keys = dict.fromkeys(key for one in each for key in one)
    return {key: spread([one[key] for one in each if key in one]) for key in keys}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
