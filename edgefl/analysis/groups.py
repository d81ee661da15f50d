"""Runs that differ in nothing but their seeds, taken together; what one group is above another, who is ahead.

Each group is compared with the first that has the same task and fleet. Which one is the first is settled
before anything is measured; the best would be chosen by the figures that are tested. Intervals are those of
each pair and figure by itself, as papers print them: they are not corrected for the number of pairs.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from edgefl.analysis.metrics import Metric, metrics
from edgefl.analysis.settings import canonical
from edgefl.analysis.summary import Summary
from edgefl.analysis.values import Difference, Estimate, Value, difference, estimate

_SEED = "seed"
# Their settings make another problem of it.
_PROBLEM = ("task", "fleet")


@dataclass(frozen=True)
class SeedGroup:
    """A run, or several that differ in nothing but their seeds.

    Its name is what theirs have in common; in its second line, what tells runs of one name apart.
    """

    name: str
    runs: tuple[Summary, ...]

    @property
    def first(self) -> Summary:
        """Any of the runs, for what all have in common."""
        return self.runs[0]

    @property
    def line(self) -> str:
        return self.name.replace("\n", ", ")

    @property
    def is_done(self) -> bool:
        return all(run.status == "done" for run in self.runs)

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the runs have in common; their seeds as a list."""
        common = dict(self.first.settings or {})
        if len(self.runs) > 1:
            common[_SEED] = [run.seed for run in self.runs]
        return common


def runs_of(groups: Sequence[SeedGroup]) -> list[Summary]:
    """All of their runs."""
    return [run for one in groups for run in one.runs]


def seeds_together(runs: Sequence[Summary]) -> list[SeedGroup]:
    """The runs, those that are done and differ in nothing but their seeds together, under names that differ.

    Of runs with the same seed too, the first ones are taken together, then the second ones, and so on.
    """
    found: dict[Any, list[Summary]] = {}
    seen = Counter[Any]()
    for place, run in enumerate(runs):
        key: Any = place
        if run.settings is not None and run.status == "done":
            alike = canonical({**run.settings, _SEED: None}), run.fleet_id, tuple(sorted(run.accuracy))
            key = alike, seen[alike, run.seed]
            seen[alike, run.seed] += 1
        found.setdefault(key, []).append(run)
    return _named_apart([SeedGroup(_common_name(group), tuple(group)) for group in found.values()])


def _common_name(runs: Sequence[Summary]) -> str:
    first, *others = (run.name.split(", ") for run in runs)
    return ", ".join(part for part in first if all(part in other for other in others)) or runs[0].method


def _named_apart(groups: Sequence[SeedGroup]) -> list[SeedGroup]:
    """Those of one name with their directories and seeds."""
    names = Counter(one.name for one in groups)
    return [
        one if names[one.name] == 1 else replace(one, name=f"{one.name}\n{_source(one)}") for one in groups
    ]


def _source(one: SeedGroup) -> str:
    folders = list(dict.fromkeys(map(_folder, one.runs)))
    more = f" and {len(folders) - 1} more" if len(folders) > 1 else ""
    return f"{folders[0]}{more}" + (f", seed {one.first.seed}" if len(one.runs) == 1 else "")


def _folder(run: Summary) -> str:
    """The folder that distinguishes runs of one name."""
    folder = Path(run.run_dir)
    return folder.parent.name if re.match(r"\d\d+-", folder.name) else folder.name


@dataclass(frozen=True)
class Average:
    """Runs that differ in nothing but their seeds, as ``edgefl compare --json`` has them.

    Every number of their summaries is there, by dotted key.
    """

    name: str
    seeds: Sequence[int]
    runs: Sequence[str]
    figures: Mapping[str, Estimate]


def averages(groups: Sequence[SeedGroup]) -> list[Average]:
    """Those of all groups that are more than one run."""
    return [
        Average(
            one.name, [run.seed for run in one.runs], [run.run_dir for run in one.runs], spreads(one.runs)
        )
        for one in groups
        if len(one.runs) > 1
    ]


def spreads(runs: Sequence[Summary]) -> dict[str, Estimate]:
    """The numbers of several runs, each of those that have it."""
    each = [run.numbers for run in runs]
    keys = dict.fromkeys(key for one in each for key in one)
    return {key: estimate([one[key] for one in each if key in one]) for key in keys}


@dataclass(frozen=True)
class Pair:
    """A group of seeds and the one that it is compared with: their names, directories and common seeds.

    Differences are by the figure's key, without those that cannot be compared.
    """

    name: str
    against: str
    runs: Sequence[str]
    against_runs: Sequence[str]
    seeds: Sequence[int]
    figures: Mapping[str, Difference]


def baselines(groups: Sequence[SeedGroup]) -> list[tuple[SeedGroup, SeedGroup]]:
    """The groups that are compared with another: each with the first of the same task and fleet.

    Where no two have these in common, each is compared with the first of all. Groups of one seed are left
    out.
    """
    repeated = [one for one in groups if len(one.runs) > 1]
    problems = [_problem(one) for one in repeated]
    if len(set(problems)) == len(problems):
        problems = [""] * len(repeated)
    first: dict[str, SeedGroup] = {}
    for problem, one in zip(problems, repeated, strict=True):
        first.setdefault(problem, one)
    pairs = zip(problems, repeated, strict=True)
    return [(one, first[problem]) for problem, one in pairs if first[problem] is not one]


def _problem(one: SeedGroup) -> str:
    settings = one.first.settings or {}
    own = {key: value for key, value in settings.items() if key.partition(".")[0] in _PROBLEM}
    return canonical([own, one.first.fleet_id])


def apart(metric: Metric, own: SeedGroup, other: SeedGroup, *, at_least: bool = False) -> Difference | None:
    """A figure of one group less that of another; None where nothing can be subtracted.

    A sum that is known of some clients alone has no difference. With ``at_least``, the other's may be lower
    bounds, whose difference is one too.
    """
    return difference(
        {run.seed: _number(metric, run, at_least=False) for run in own.runs},
        {run.seed: _number(metric, run, at_least=at_least) for run in other.runs},
    )


def _number(metric: Metric, run: Summary, *, at_least: bool) -> float | None:
    value = metric.of(run)
    if value is None or (value.between and value.between.high is None and not at_least):
        return None
    return value.mean


def pairs(groups: Sequence[SeedGroup]) -> list[Pair]:
    """The groups of seeds, each against another; see ``baselines``."""
    found = baselines(groups)
    judged = [metric for metric in metrics(runs_of(groups)) if metric.judged] if found else []
    return [
        Pair(
            own.line,
            other.line,
            [run.run_dir for run in own.runs],
            [run.run_dir for run in other.runs],
            sorted({run.seed for run in own.runs} & {run.seed for run in other.runs}),
            {metric.key: one for metric in judged if (one := apart(metric, own, other))},
        )
        for own, other in found
    ]


@dataclass(frozen=True)
class Judged:
    """One figure of all groups, and who is ahead.

    Attributes:
        values: each group's.
        winner: the place of the best group, at the devices' numbers as given; None where there is none, or
            where it is not known.
        tied: the places of the best groups where several have the same figure; there is no winner then.
        close_seeds: where another is not separable from the winner, of how many seeds, the fewest: the 95%
            interval of their difference over seeds contains 0, or not all seeds of the winner have the
            figure. None where it is separable.
        order: whether the winner is best over all that the devices' numbers may be: "holds", "depends", or
            "open" where that is not known. Empty without a clear winner, and where the figure rests on no
            interval.
        depends_on: the numbers that turn the order alone, if it "depends"; there are none where only several
            together do.
    """

    metric: Metric
    values: Sequence[Value | None]
    winner: int | None = None
    tied: Sequence[int] = ()
    close_seeds: int | None = None
    order: Literal["", "holds", "depends", "open"] = ""
    depends_on: Sequence[str] = field(default=())

    @property
    def ranges(self) -> bool:
        """Whether some group is ahead of another."""
        return self.winner is not None or 0 < len(self.tied) < len(self.values)


def judged(metric: Metric, groups: Sequence[SeedGroup]) -> Judged:
    """Who is ahead in a figure; a group that has a run which is not done is not judged."""
    values = [metric.value(one.runs) for one in groups]
    one = Judged(metric, values)
    ranked = _ranked(metric, groups, values) if metric.better else {}
    # Who reached a target in all seeds is ahead of who did in some, however soon.
    best = min(ranked.values(), default=(True, math.inf))
    # One alone is ahead of nobody, and none of those that did not reach a target is.
    if len(ranked) < 2 or math.isinf(best[1]):  # noqa: PLR2004 - two are needed
        return one
    first, *others = [place for place, rank in ranked.items() if rank == best]
    if others:
        return replace(one, tied=[first, *others])
    bounds = (value := values[first]) and value.between
    if bounds and bounds.high is None and metric.better == "lower":
        return one  # a lower bound is not the least
    return replace(one, winner=first, close_seeds=_not_separable(metric, groups, first, ranked))


def _ranked(
    metric: Metric, groups: Sequence[SeedGroup], values: Sequence[Value | None]
) -> dict[int, tuple[bool, float]]:
    """The places of those that can be judged, each with what is less for a better one.

    None can where an unknown figure may be the best.
    """
    sign, found = -1 if metric.better == "higher" else 1, {}
    for place, (one, value) in enumerate(zip(groups, values, strict=True)):
        if value is None or not one.is_done:
            continue
        if not value.reached:
            found[place] = (True, math.inf)
        elif value.mean is None:
            return {}
        else:
            found[place] = (value.runs < len(one.runs), sign * value.mean)
    return found


def _not_separable(
    metric: Metric, groups: Sequence[SeedGroup], winner: int, ranked: Mapping[int, tuple[bool, float]]
) -> int | None:
    """Of how many seeds a winner is not separable from another, the fewest; None where it is from all.

    Groups of one seed alone are taken as they are: nothing is known of other seeds.
    """
    if ranked[winner][0]:
        value = metric.value(groups[winner].runs)
        return value.runs if value else 0
    others = (place for place, (_, rank) in ranked.items() if place != winner and math.isfinite(rank))
    found = [apart(metric, groups[winner], groups[place], at_least=True) for place in others]
    return min((one.pairs for one in found if one and one.separable is False), default=None)


@dataclass(frozen=True)
class Front:
    """A Pareto front: the groups that no other beats, in the order of what they cost.

    A group beats another that has both figures if it is at least as accurate, costs at most as much, and is
    better in one of the two. Groups that are equal in both are on the front together. Only groups whose
    runs are all done take part.
    """

    accuracy: str
    cost: str
    groups: Sequence[int]


def fronts(groups: Sequence[SeedGroup]) -> Iterator[Front]:
    """One for each evaluated model and each cost that two groups have."""
    found = metrics(runs_of(groups))
    done = [place for place, one in enumerate(groups) if one.is_done]
    means = {
        metric.key: {
            place: value.mean
            for place in done
            if (value := metric.value(groups[place].runs)) and value.mean is not None
        }
        for metric in found
        if metric.cost or metric.key.startswith("accuracy.")
    }
    for gain in (metric.key for metric in found if metric.key.startswith("accuracy.") and metric.judged):
        for cost in (metric.key for metric in found if metric.cost):
            both = means[gain].keys() & means[cost].keys()
            if len(both) > 1:
                yield Front(
                    gain, cost, front({place: (means[cost][place], means[gain][place]) for place in both})
                )


def front(points: Mapping[int, tuple[float, float]]) -> list[int]:
    """The points (cost, gain) by key that no other beats, which costs less and gains more; by cost."""
    found: list[int] = []
    for key, (cost, gain) in sorted(points.items(), key=lambda item: (item[1][0], -item[1][1], item[0])):
        # Those before cost at most as much, and the last one found gains most of them.
        if not found or gain > points[found[-1]][1] or (cost, gain) == points[found[-1]]:
            found.append(key)
    return found
