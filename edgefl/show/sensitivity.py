"""What figures depend on, in words and tables."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from rich.console import Group, RenderableType

from edgefl.core.corners import Interval
from edgefl.planning.describe import bounded
from edgefl.planning.sensitivity import Effect, Sensitivity, Verdict, strength
from edgefl.show.table import MISSING, Column, Line, Table
from edgefl.show.values import between, span

_SHOWN = 8
"""Numbers in the table, and those that are named for each verdict."""
_VISIBLE = 0.005
"""Changes by less than half a percent are left out of the table."""
_UNITS = {"energy": "J", "time": "s"}


def sensitivity(found: Sensitivity) -> RenderableType:
    """Verdicts, then what changes the figures most."""
    return Group(*_verdicts(found), Line(), *_effects(found), Line(about(found), "dim"))


def _verdicts(found: Sensitivity) -> Iterator[RenderableType]:
    if found.name:
        yield Line()
        yield Line(found.name, "bold")
    for verdict in found.verdicts:
        first, *turns = verdict_lines(verdict)
        yield Line(first, "" if verdict.robust else "yellow")
        yield from map(Line, turns[:_SHOWN])
        if len(turns) > _SHOWN:
            yield Line(f"  and where {len(turns) - _SHOWN} more numbers do; --json has all", "dim")
    for quantity, sides in found.figures.items():
        unknown = [name for name, figure in sides.items() if figure is None]
        if unknown:
            yield Line(f"{quantity} of {', '.join(unknown)} is unknown, so it is not compared", "yellow")


def verdict_lines(verdict: Verdict) -> list[str]:
    """A verdict in words, then a line for each number that turns it alone."""
    ways = ((turn, "rises above" if turn.above else "falls below") for turn in verdict.turns)
    return [_said(verdict), *(f"  turns where {turn.number} {way} {turn.value}" for turn, way in ways)]


def _said(verdict: Verdict) -> str:
    has = f"{verdict.less} takes less {verdict.quantity} than {verdict.more}"
    if verdict.robust:
        if verdict.ratio is None or verdict.ratio.high is None:
            return f"{has} over all intervals"
        low, high = ((f"{ratio:.3g}", "times") for ratio in verdict.ratio if ratio is not None)
        times = span(low, high)
        return f"{has} over all intervals: {verdict.more} takes {times} as much"
    share = f"{verdict.holds:.0%}" if verdict.holds in {0, 1} else f"{verdict.holds:.1%}"
    together = ", several together do" if verdict.together else ""
    alone = "" if verdict.turns else f"; no number alone turns it{together}"
    return f"{has} at the numbers' own values, and in {share} of {verdict.samples} samples{alone}"


def _effects(found: Sensitivity) -> Iterator[RenderableType]:
    for one in effects(found):
        if one.table.rows:
            yield one.table
        totals = "; ".join(f"{side} {text}" for side, text in one.together.items())
        yield Line(f"all together: {totals}")
        yield Line()


class Effects(NamedTuple):
    """What changes a quantity most.

    Attributes:
        table: the numbers that change it most, their ranges, and each side's figure at both ends.
        together: each side's figure, and between what it is with all numbers at once.
    """

    quantity: str
    table: Table
    together: Mapping[str, str]


def effects(found: Sensitivity) -> Iterator[Effects]:
    """What changes each quantity most."""
    for quantity, sides in found.figures.items():
        unit = _UNITS[quantity.partition(" ")[0]]
        columns = [
            Column(quantity, "number"),
            Column("range", lambda row: bounded(row.low, None, row.high), left=True),
            *(Column(side, _column(quantity, side, unit)) for side in sides),
        ]
        total = {side: between(value, found.between[quantity][side], unit) for side, value in sides.items()}
        strong = sorted(found.effects, key=lambda one, of=quantity: -strength(one, of))  # type: ignore[misc]
        strong = [one for one in strong if strength(one, quantity) > _VISIBLE][:_SHOWN]
        yield Effects(quantity, Table(columns, strong), total)


def _column(quantity: str, side: str, unit: str) -> Callable[[Effect], str]:
    def cell(row: Effect) -> str:
        low, high = row.figures[quantity][side]
        return MISSING if math.isnan(low + high) else between(None, Interval(low, high), unit)

    return cell


def about(found: Sensitivity) -> str:
    """How the numbers were swept."""
    swept_ = (
        "intervals from end to end"
        if found.factor == 1
        else f"intervals from end to end, assumed numbers by 1/{found.factor:g} and {found.factor:g} at least"
    )
    return (
        f"{swept_}: each alone while the others stay at their values, and all together in {found.samples} "
        f"Latin hypercube samples (seed {found.seed}); all sides on the same numbers"
    )
