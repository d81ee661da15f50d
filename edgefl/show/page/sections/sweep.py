"""Groups of runs as points among their accuracies and costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from edgefl.show.averages import Compared, Row
from edgefl.show.rows import COSTS, traded


@dataclass(frozen=True)
class SweepFigure:
    """One figure of all groups, a row of ``edgefl compare``.

    Attributes:
        label: its name.
        key: its place in a run of `edgefl compare --json`, dotted; several with `` + `` between them are
            summed.
        unit: "s", "B", "J" or "share".
        values: each group's mean; None where it has none, and where it is of some of the clients alone.
    """

    label: str
    key: str
    unit: str
    values: Sequence[float | None]


@dataclass(frozen=True)
class Front:
    """A Pareto front: the groups that no other beats.

    A group beats another that has both figures if it is at least as accurate, costs at most as much, and is
    better in one of the two. Groups that are equal in both are on the front together. Only groups whose
    runs are all done take part.

    Attributes:
        accuracy: the place of the accuracy in ``Sweep.figures``.
        cost: the place of the cost: virtual time, bytes or joules of the whole run.
        groups: the places of the groups on the front, by ascending cost.
    """

    accuracy: int
    cost: int
    groups: Sequence[int]


@dataclass(frozen=True)
class Sweep:
    """What became of the groups; without anything where there is one group alone.

    Attributes:
        figures: accuracies, virtual time, bytes in both directions and energy.
        fronts: for each evaluated model and each cost that two groups have.
    """

    figures: Sequence[SweepFigure]
    fronts: Sequence[Front]


def sweep(groups: Sequence[Compared]) -> Sweep:
    """The groups' figures and their fronts."""
    if len(groups) == 1:
        return Sweep([], [])
    figures = [_figure(row, groups) for row in traded(groups) if row.key in COSTS or _is_accuracy(row.key)]
    done = [all(run.status == "done" for run in one.runs) for one in groups]
    return Sweep(figures, list(_fronts(figures, done)))


def _is_accuracy(key: str) -> bool:
    return key.startswith("accuracy.") and key.endswith(".value")


def _figure(row: Row, groups: Sequence[Compared]) -> SweepFigure:
    found = [row.value(one) for one in groups]
    values = [value.mean if value else None for value in found]
    return SweepFigure(row.label.strip(), row.key, row.unit, values)


def _fronts(figures: Sequence[SweepFigure], done: Sequence[bool]) -> Iterator[Front]:
    place = {figure.key: place for place, figure in enumerate(figures)}
    for accuracy in filter(_is_accuracy, place):
        for cost in (key for key in COSTS if key in place):
            pairs = zip(figures[place[cost]].values, figures[place[accuracy]].values, done, strict=True)
            points = {
                group: (spent, right)
                for group, (spent, right, ended) in enumerate(pairs)
                if ended and spent is not None and right is not None
            }
            if len(points) > 1:
                yield Front(place[accuracy], place[cost], front(points))


def front(points: Mapping[int, tuple[float, float]]) -> list[int]:
    """The points that no other beats, by ascending cost.

    Args:
        points: (cost, gain) by key; less of the first and more of the second are better.
    """
    found: list[int] = []
    for key, (cost, gain) in sorted(points.items(), key=lambda item: (item[1][0], -item[1][1])):
        # Those before cost at most as much, and the last one found gains most of them.
        if not found or gain > points[found[-1]][1] or (cost, gain) == points[found[-1]]:
            found.append(key)
    return found
