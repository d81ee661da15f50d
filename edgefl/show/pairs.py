"""Groups of seeds against each other: what one is above another, seed by seed, with a 95% interval.

Each group is compared with the first that has the same task and fleet. Which one is the first is settled
before anything is measured; the best would be chosen by the figures that are tested. Intervals are those of
each pair and figure by itself, as papers print them: they are not corrected for the number of pairs, and the
notes say so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from edgefl.analysis.estimates import Difference, difference
from edgefl.core.corners import Interval
from edgefl.show.averages import SHOWS, Compared, Row, Show
from edgefl.show.intervals import alike, with_half
from edgefl.show.rows import traded
from edgefl.show.settings import canonical
from edgefl.show.summary import Summary
from edgefl.show.table import MISSING

# Their settings make another problem of it.
_PROBLEM = ("task", "fleet")
# A share is of 1, a difference of shares in percentage points.
_SHOWS: Mapping[str, Show] = {
    **SHOWS,
    "share": lambda share: f"{100 * share:.1f} points",
}


@dataclass(frozen=True)
class Apart:
    """A figure of one group less that of another.

    Attributes:
        mean: of the differences over seeds.
        interval_95: of the mean; see ``estimates``. None of one pair of seeds alone.
        pairs: of how many seeds; where they are not paired, of the group that has fewer.
        of: how many seeds there are.
        paired: whether it is that of the same seeds; otherwise the interval is Welch's.
        separable: whether the interval is without 0; None without an interval.
    """

    mean: float
    interval_95: Interval | None
    pairs: int
    of: int
    paired: bool
    separable: bool | None


@dataclass(frozen=True)
class Pair:
    """Two groups of seeds.

    Attributes:
        name, against: of the group, and of the one that it is compared with.
        runs, against_runs: their directories.
        seeds: those that both have.
        figures: by the key of the figure's row; without those that cannot be compared.
    """

    name: str
    against: str
    runs: Sequence[str]
    against_runs: Sequence[str]
    seeds: Sequence[int]
    figures: Mapping[str, Apart]


def baselines(compared: Sequence[Compared]) -> list[tuple[Compared, Compared]]:
    """The groups that are compared with another: each with the first of the same task and fleet.

    Where no two have these in common, each is compared with the first of all. Groups of one seed are left
    out.
    """
    repeated = [one for one in compared if len(one.runs) > 1]
    problems = [_problem(one) for one in repeated]
    if len(set(problems)) == len(problems):
        problems = [""] * len(repeated)
    first: dict[str, Compared] = {}
    for problem, one in zip(problems, repeated, strict=True):
        first.setdefault(problem, one)
    return [
        (one, first[problem])
        for problem, one in zip(problems, repeated, strict=True)
        if first[problem] is not one
    ]


def _problem(one: Compared) -> str:
    settings = one.first.settings or {}
    own = {key: value for key, value in settings.items() if key.partition(".")[0] in _PROBLEM}
    return canonical([own, one.first.fleet_id])


def apart(row: Row, own: Compared, other: Compared, *, at_least: bool = False) -> Difference | None:
    """A figure of one group less that of another; None where nothing can be subtracted.

    Args:
        row: the figure's. An energy that is known of some clients alone has no difference.
        own: the group.
        other: the one that is subtracted.
        at_least: whether the other's may be lower bounds, whose difference is one too.
    """
    return difference(
        {run.seed: _figure(row, run, at_least=False) for run in own.runs},
        {run.seed: _figure(row, run, at_least=at_least) for run in other.runs},
    )


def _figure(row: Row, run: Summary, *, at_least: bool) -> float | None:
    if row.figure is None:
        return None
    bounds = row.bounds(run)
    return None if bounds and bounds.high is None and not at_least else row.figure(run)


def pairs(compared: Sequence[Compared]) -> list[Pair]:
    """The groups of seeds, each against another; see ``baselines``."""
    found, rows = baselines(compared), list(traded(compared))
    return [_pair(own, other, rows) for own, other in found]


def _pair(own: Compared, other: Compared, rows: Sequence[Row]) -> Pair:
    found = {row.key: apart(row, own, other) for row in rows}
    both = {run.seed for run in own.runs} & {run.seed for run in other.runs}
    return Pair(
        one_line(own),
        one_line(other),
        [run.run_dir for run in own.runs],
        [run.run_dir for run in other.runs],
        sorted(both),
        {key: _told(one) for key, one in found.items() if one},
    )


def _told(one: Difference) -> Apart:
    bounds = None if one.half is None else Interval(one.mean - one.half, one.mean + one.half)
    return Apart(one.mean, bounds, one.pairs, one.of, one.paired, one.separable)


def one_line(one: Compared) -> str:
    """A group's name; runs of one name differ in its second line."""
    return one.name.replace("\n", ", ")


@dataclass(frozen=True)
class PairTexts:
    """The differences of groups in words.

    Attributes:
        heads: of each pair, in two lines.
        labels: of the figures.
        texts: of each figure, each pair's.
        notes: what they mean.
    """

    heads: Sequence[str]
    labels: Sequence[str]
    texts: Sequence[Sequence[str]]
    notes: Sequence[str]


def pair_texts(
    compared: Sequence[Compared], keys: Collection[str] = (), *, one_unit: bool = False
) -> PairTexts:
    """The differences of groups of seeds in words, if there are two; of all rows, or of those of ``keys``."""
    found, labels, cells = baselines(compared), [], []
    for row in traded(compared) if found else ():
        each = [apart(row, own, other) for own, other in found]
        if any(each) and (not keys or row.key in keys):
            label, show = row.label.strip(), _SHOWS.get(row.unit, "{:g}".format)
            if one_unit and (alone := alike(row.unit, [one.mean for one in each if one])):
                label, show = f"{label} ({alone[0]})", alone[1]
            labels.append(label)
            cells.append([(one, said(one, show)) for one in each])
    told = [one for row in cells for one, _ in row if one]
    return PairTexts(
        [f"{one_line(own)}\nagainst {one_line(other)}" for own, other in found],
        labels,
        [[text for _, text in row] for row in cells],
        list(_notes(told)),
    )


def _notes(told: Sequence[Difference]) -> Iterator[str]:
    if not told:
        return
    yield (
        "against: means of the differences on the same seeds, ± the 95% interval of each by itself, not "
        "corrected for their number"
    )
    if any(map(_open, told)):
        yield "not separable: the interval contains 0"
    if any(not one.paired for one in told):
        yield "unpaired: of groups with fewer than two seeds in common, in Welch's interval"


def said(one: Difference | None, show: Show) -> str:
    """A difference in words: ``"-1.2 ±0.3 s"``, ``"+0.4 ±0.9 points (not separable at 5 seeds)"``."""
    if one is None:
        return MISSING
    sign = "+" if one.mean > 0 else "-" if one.mean < 0 else ""
    text = with_half(f"{sign}{show(abs(one.mean))}", show(one.half) if one.half else "")
    told = "equal" if one.mean == 0 == one.half else text
    words = list(_words(one))
    return f"{told} ({', '.join(words)})" if words else told


def _open(one: Difference) -> bool:
    """Whether a difference may be either way; where all are 0, the figures are equal."""
    return one.separable is False and bool(one.mean or one.half)


def _words(one: Difference) -> Iterator[str]:
    seeds = f"{one.pairs} of {one.of} seeds" if one.pairs < one.of else f"{one.pairs} seeds"
    if one.half is None:
        yield "one seed"
    elif _open(one):
        yield f"not separable at {seeds}"
    elif one.pairs < one.of:
        yield seeds
    if not one.paired:
        yield "unpaired"
