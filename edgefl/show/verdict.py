"""Which group of runs is ahead, figure by figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from edgefl.core.units import show_bytes, show_joules
from edgefl.show.averages import Compared, Row, Value, amount
from edgefl.show.dependence import Dependence
from edgefl.show.pairs import apart
from edgefl.show.rows import BYTES, MODELS, rows
from edgefl.show.sensitivity import title
from edgefl.show.table import MISSING, NOT_REACHED
from edgefl.show.targets import useful_to_target

Order = Literal["", "holds", "depends", "open"]


@dataclass(frozen=True)
class Verdict:
    """One figure of all groups.

    Attributes:
        label: its name.
        key: its place in a run of `edgefl compare --json`, dotted, or the sum or difference of several; see
            ``Row``.
        unit: "s", "B", "J", "g" (of CO2e), "share" or empty.
        better: "higher" or "lower"; empty where neither is.
        texts: each group's, as a terminal shows it.
        means: each group's; None where it has none.
        winner: the place of the best group, at the devices' numbers as given; None where there is none, or
            where it is not known.
        close: whether another is not separable from it: the 95% interval of their difference over seeds, see
            ``show.pairs``, contains 0, or not all seeds of the winner have the figure.
        close_seeds: of how many seeds, the fewest; None where it is not close.
        tied: the places of the best groups where several have the same figure; there is no winner then.
        aside: whether it is that of a second model.
        order: whether the winner is best over all that the devices' numbers may be: "holds", "depends", or
            "open" where that is not known. Empty without a clear winner, and where the figure rests on no
            interval.
        depends_on: the numbers that turn the order alone, if it "depends"; there are none where only several
            together do.
    """

    label: str
    key: str
    unit: str
    better: str
    texts: Sequence[str]
    means: Sequence[float | None]
    winner: int | None
    close: bool
    tied: Sequence[int]
    aside: bool = False
    order: Order = ""
    depends_on: Sequence[str] = ()
    close_seeds: int | None = None


def verdict(groups: Sequence[Compared], found: Dependence | None = None) -> list[Verdict]:
    """The figures by which groups are judged: accuracy, what a target took, and what all took.

    A group that has a run which is not done is shown and not judged.

    Args:
        groups: those that are compared.
        found: what times and energies depend on; None where that was not asked for.
    """
    _, *others = _models(groups)
    main = [judged(row, groups, found) for row in verdict_rows(groups)]
    aside = [judged(row, groups, found) for model in others for row in _to_target(groups, model)]
    return [*main, *(replace(one, aside=True) for one in aside)]


def main_model(groups: Sequence[Compared]) -> str:
    """The model whose way to the target is judged."""
    return _models(groups)[0]


def _models(groups: Sequence[Compared]) -> list[str]:
    """The models that were evaluated, the one by which all groups can be compared first."""
    runs = [run.accuracy for one in groups for run in one.runs if run.accuracy]
    found = [model for model in MODELS if any(model in run for run in runs)]
    return sorted(found, key=lambda model: not all(model in run for run in runs)) or [MODELS[0]]


def verdict_rows(groups: Sequence[Compared]) -> Iterator[Row]:
    """The figures of the main model, and of all clients; below an amount what is known of it."""
    found = {row.key: row for row in rows(groups)}
    yield from (found[key] for one in MODELS if (key := f"accuracy.{one}.value") in found)
    to_target = list(_to_target(groups, main_model(groups)))
    yield from to_target
    yield from _with_parts(
        _ALL[key] if key in _ALL else found[key] for key in _WHOLE if key in {**found, **_ALL}
    )
    if not any(_is_wasted(row) for row in to_target):
        wasted = [row for row in found.values() if _is_wasted(row) and row.unit in {"B", "J"}]
        yield from (*_USEFUL, *wasted) if wasted else ()


def _is_wasted(row: Row) -> bool:
    return row.key.startswith("wasted.") or (".wasted." in row.key and row.better == "lower")


def _to_target(groups: Sequence[Compared], model: str) -> Iterator[Row]:
    """What it took a model; where none reached the target, one row says so."""
    start, runs = f"target.{model}.", [run for one in groups for run in one.runs]
    found = [row for row in rows(groups) if row.key.startswith((start, f"carbon.to_{start}")) and row.better]
    if not any(row.value(one) for row in found for one in groups):
        found = [row for row in found if row.unit == "s"][:1]
    wasted = [row for row in found if _is_wasted(row)]
    useful = useful_to_target(runs, model) if wasted else ()
    # Work and rounds are among all figures.
    kept = [row for row in found if row.unit not in {"FLOP", ""} and row not in wasted]
    for row in _with_parts((*kept, *useful, *wasted)):
        yield replace(row, label=row.label.removesuffix(f", {model}"))


def _with_parts(found: Iterable[Row]) -> Iterator[Row]:
    """Rows, each with the one of what is known of it."""
    for row in found:
        yield row
        if row.part:
            yield row.part


_WHOLE = ("virtual_s", BYTES.key, "joules", "carbon.emitted.total.grams")
_ALL = {BYTES.key: BYTES}
# What was merged; more of it is neither better nor worse.
_USEFUL = (
    amount(
        "useful bytes",
        show_bytes,
        lambda run: run.spent["merged"].bytes,
        "B",
        "",
        key="spent.merged.down_bytes + spent.merged.up_bytes",
    ),
    amount(
        "useful energy",
        show_joules,
        lambda run: run.spent["merged"].joules,
        "J",
        "",
        key="spent.merged.joules",
    ),
)


def judged(row: Row, groups: Sequence[Compared], found: Dependence | None = None) -> Verdict:
    """Who is ahead in a figure; the arguments are those of ``verdict``."""
    values, texts = [row.value(one) for one in groups], [row.cell(one) for one in groups]
    ranges = _ranges(row, groups, values, texts) if row.better else []
    means = [None if value is None else value.mean for value in values]
    winner, tied = _ahead(ranges)
    seeds = None if winner is None else _not_separable(row, groups, winner, ranges)
    close = seeds is not None
    one = Verdict(
        row.label.strip(), row.key, row.unit, row.better, texts, means, winner, close, tied, close_seeds=seeds
    )
    if winner is None or close or not _rests_on_intervals(row, groups):
        return one
    order, numbers = _order(row, groups, winner, ranges, found)
    return replace(one, order=order, depends_on=numbers)


class _Range(NamedTuple):
    """Where a group's figure lies, with the sign that makes lower better.

    Attributes:
        group: its place.
        mean: the mean of the runs that have it.
        missing: whether some of the runs do not, since they did not reach the target.
        bounds: the least and the most that it may be on other numbers of the devices; None if unknown.
    """

    group: int
    mean: float
    missing: bool
    bounds: tuple[float, float] | None


def _ranges(
    row: Row, groups: Sequence[Compared], values: Sequence[Value | None], texts: Sequence[str]
) -> list[_Range]:
    """Those of the groups that can be judged; of none where an unknown figure may be the best."""
    ranges: list[_Range] = []
    for place, (one, value, text) in enumerate(zip(groups, values, texts, strict=True)):
        if text == MISSING or any(run.status != "done" for run in one.runs):
            continue
        if text == NOT_REACHED:
            ranges.append(_Range(place, math.inf, missing=True, bounds=(math.inf, math.inf)))
        elif value is None:
            return []
        else:
            ranges.append(_range(place, value, row, of=len(one.runs)))
    return ranges


def _ahead(ranges: Sequence[_Range]) -> tuple[int | None, list[int]]:
    """The winner, and those that are equal in its place."""
    # Who reached a target in all seeds is ahead of who did in some, however soon.
    judged = [found for found in ranges if not found.missing] or ranges
    best = min((found.mean for found in judged), default=math.inf)
    # One alone is ahead of nobody, and none of those that did not reach a target is.
    if len(ranges) < 2 or math.isinf(best):  # noqa: PLR2004 - two are needed
        return None, []
    first, *tied = [found for found in judged if found.mean == best]
    if tied:
        return None, [first.group, *(other.group for other in tied)]
    if first.bounds and math.isinf(first.bounds[1]):
        return None, []  # a lower bound is not the least
    return first.group, []


def _not_separable(row: Row, groups: Sequence[Compared], winner: int, ranges: Sequence[_Range]) -> int | None:
    """Of how many seeds a winner is not separable from another, the fewest; None where it is from all.

    Groups of one seed alone are taken as they are: nothing is known of other seeds.
    """
    (own,) = (one for one in ranges if one.group == winner)
    if own.missing:
        value = row.value(groups[winner])
        return value.runs if value else 0
    others = (one.group for one in ranges if one.group != winner and math.isfinite(one.mean))
    found = [apart(row, groups[winner], groups[place], at_least=True) for place in others]
    return min((one.pairs for one in found if one and one.separable is False), default=None)


def _range(place: int, value: Value, row: Row, of: int) -> _Range:
    sign = -1 if row.better == "higher" else 1
    bounds = None
    if value.between is not None:
        ends = value.between.low, math.inf if value.between.high is None else value.between.high
        low, most = sorted(sign * end for end in ends)
        bounds = low, most
    return _Range(place, sign * value.mean, value.runs < of, bounds)


# Times, energies and masses are made of the devices' numbers.
_MADE_OF_NUMBERS = {"s", "J", "g"}


def _rests_on_intervals(row: Row, groups: Sequence[Compared]) -> bool:
    runs = (run for one in groups for run in one.runs)
    return row.unit in _MADE_OF_NUMBERS and any(run.joules_between is not None for run in runs)


def _order(
    row: Row, groups: Sequence[Compared], winner: int, ranges: Sequence[_Range], found: Dependence | None
) -> tuple[Order, list[str]]:
    """Whether a winner is ahead of all others on other numbers too, and what that depends on.

    Intervals that have nothing in common prove it. Those that overlap prove nothing: groups on the same
    devices share the errors of their numbers.
    """
    tested = dict(found.verdicts(row.key, groups[winner])) if found else {}
    (own,) = (one.bounds for one in ranges if one.group == winner)
    others = [one for one in ranges if one.group != winner]
    against = [tested.get(title(groups[one.group])) for one in others]
    turned = [one for one in against if one and not one.robust]
    if turned:
        return "depends", list(dict.fromkeys(turn.number for one in turned for turn in one.turns))
    apart = (own and one.bounds and own[1] < one.bounds[0] for one in others)
    known = all(one or proven for one, proven in zip(against, apart, strict=True))
    return "holds" if known else "open", []
