"""Which group of runs is ahead, figure by figure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from edgefl.core.units import show_bytes, show_joules
from edgefl.report.averages import Compared, Row, Value, amount
from edgefl.report.rows import rows
from edgefl.report.tables import MISSING, NOT_REACHED

_WASTED, _TARGET = "wasted.", "target."


@dataclass(frozen=True)
class Verdict:
    """One figure of all groups.

    Attributes:
        label: its name.
        key: its place in a run of `edgefl compare --json`, dotted, or the sum of several; see ``Row``.
        unit: "s", "B", "J", "FLOP", "share" or empty.
        better: "higher" or "lower"; empty where neither is.
        texts: each group's, as a terminal shows it.
        means: each group's; None where it has none.
        winner: the place of the best group; None where there is none, or where it is not known.
        close: whether another is within the deviations over seeds, or the bounds, of the winner.
        tied: the places of the best groups where several have the same figure; there is no winner then.
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


def verdict(groups: Sequence[Compared]) -> list[Verdict]:
    """The figures by which groups are judged: accuracy, what a target took, and what all took.

    A group that has a run which is not done is shown and not judged.
    """
    return [_judged(row, groups) for row in _rows(groups)]


def _rows(groups: Sequence[Compared]) -> Iterator[Row]:
    found = [row for row in rows(groups) if row.better and (row.main or row.key.startswith(_TARGET))]
    yield from (row for row in found if row.key.startswith("accuracy."))
    yield from (row for row in found if row.key.startswith(_TARGET))
    yield from (row for row in found if not row.key.startswith(("accuracy.", _TARGET, _WASTED)))
    wasted = [row for row in found if row.key.startswith(_WASTED)]
    if wasted:
        yield from _USEFUL
        yield from wasted


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


def _judged(row: Row, groups: Sequence[Compared]) -> Verdict:
    values, texts = [row.value(one) for one in groups], [row.cell(one) for one in groups]
    ranges = _ranges(row, groups, values, texts) if row.better else []
    means = [None if value is None else value.mean for value in values]
    return Verdict(row.label.strip(), row.key, row.unit, row.better, texts, means, *_ahead(ranges))


class _Range(NamedTuple):
    """Where a group's figure lies, with the sign that makes lower better.

    Attributes:
        group: its place.
        low, mean, high: its least, itself and its most.
    """

    group: int
    low: float
    mean: float
    high: float


def _ranges(
    row: Row, groups: Sequence[Compared], values: Sequence[Value | None], texts: Sequence[str]
) -> list[_Range]:
    """Those of the groups that can be judged; of none where an unknown figure may be the best."""
    ranges: list[_Range] = []
    for place, (one, value, text) in enumerate(zip(groups, values, texts, strict=True)):
        if text == MISSING or any(run.status != "done" for run in one.runs):
            continue
        if text == NOT_REACHED:
            ranges.append(_Range(place, math.inf, math.inf, math.inf))
        elif value is None or not value.complete:
            return []
        else:
            ranges.append(_range(place, value, row, of=len(one.runs)))
    return ranges


def _ahead(ranges: Sequence[_Range]) -> tuple[int | None, bool, list[int]]:
    """The winner, whether another is within its range, and those that are equal in its place."""
    best = min((found.mean for found in ranges), default=math.inf)
    # One alone is ahead of nobody, and none of those that did not reach a target is.
    if len(ranges) < 2 or math.isinf(best):  # noqa: PLR2004 - two are needed
        return None, False, []
    first, *tied = [found for found in ranges if found.mean == best]
    if tied:
        return None, False, [first.group, *(other.group for other in tied)]
    close = any(other.low <= first.high for other in ranges if other is not first)
    return first.group, close, []


def _range(place: int, value: Value, row: Row, of: int) -> _Range:
    deviation = value.deviation or 0.0
    low, high = value.mean - deviation, value.mean + deviation
    if value.between is not None:
        low = min(low, value.between.low)
        high = math.inf if value.between.high is None else max(high, value.between.high)
    if value.runs < of:
        high = math.inf  # some of its seeds did not reach the target
    sign = -1 if row.better == "higher" else 1
    low, high = sorted((sign * low, sign * high))
    return _Range(place, low, sign * value.mean, high)
