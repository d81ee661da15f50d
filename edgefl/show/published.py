"""What papers report, beside what runs have here, as tables and lines."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from edgefl.analysis.published import RATIO, Beside, Figure, PublishedOrder
from edgefl.core.units import amount
from edgefl.show.table import MISSING, Line, Table
from edgefl.show.values import alike, between

# Pairs that a line names.
_MOST = 6


def tables(found: Sequence[Beside], *, one_unit: bool = False) -> tuple[list[Table], list[Line]]:
    """A table for each paper, and whether the orders agree; ``one_unit`` as of ``comparison``."""
    made, notes = [], []
    for one in found:
        twice = Counter((figure.run, figure.figure) for figure in one.figures)
        rows = [
            _cells(figure, alone=twice[figure.run, figure.figure] == 1, one_unit=one_unit)
            for figure in one.figures
        ]
        made.append(Table([one.paper, "figure", "published", "here", "deviation"], rows))
        notes += [Line(order_words(order)) for order in one.orders]
        notes += [Line(one.note, "dim")] if one.note else []
    return made, notes


def _cells(one: Figure, *, alone: bool, one_unit: bool) -> list[str]:
    known = [value for value in (one.published, one.here) if value is not None]
    unit = "" if one.unit == RATIO else one.unit
    head, write = alike(one.figure, unit, known) if one_unit else (one.figure, None)
    write = write or (partial(amount, unit=unit) if unit else lambda value: (f"{value:.4g}", ""))
    half = one.interval_95.high - one.here if one.here and one.interval_95 and one.interval_95.high else None
    here = between(one.here, None, unit, MISSING, half=half, write=write)
    ours = "not run here" if one.group is None else "" if alone else one.name
    return [
        f"{one.run}\n  {ours}" if ours else one.run,
        head,
        between(one.published, None, unit, write=write),
        here,
        deviation_words(one),
    ]


def deviation_words(one: Figure) -> str:
    """How far ours is off: ``"+1.2 points"``, or a share of what is published."""
    if one.deviation is None:
        return MISSING
    if one.unit == "share":
        return f"{100 * one.deviation:+.1f} points"
    return f"{one.deviation / one.published:+.1%}" if one.published else f"{one.deviation:+.3g}"


def order_words(one: PublishedOrder) -> str:
    """``"accuracy: order agrees in 5 of 6 pairs, 1 open"``."""
    words = [f"{one.figure}: order agrees in {one.agree} of {one.pairs} pair{'s' * (one.pairs > 1)}"]
    words += [f"{one.open} open (equal, or not separable over seeds)"] if one.open else []
    turned = [*one.turned[:_MOST], *([f"{len(one.turned) - _MOST} more"] if len(one.turned) > _MOST else [])]
    return ", ".join(words) + (f"; the other way round: {'; '.join(turned)}" if turned else "")
