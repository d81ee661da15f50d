"""The figures by which runs are judged, in one table that fits a screen, and who is ahead.

Of up to three runs or averages it has a column for each; of more a row for each, and the figures that matter
most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from edgefl.analysis.estimates import over_seeds
from edgefl.analysis.explain.path import NOBODY
from edgefl.show.averages import Compared, Row
from edgefl.show.formats.texts import Note, TextTable
from edgefl.show.intervals import texts
from edgefl.show.rows import COSTS, PEAK, REFUSED, WAITED_MOST, measure_rows
from edgefl.show.targets import target_name
from edgefl.show.verdict import Verdict, judged, main_model, verdict_rows

ABREAST = 3
"""Runs that stand side by side; more have a row each."""
# Rows where runs stand side by side; columns, with the name, where they do not.
_ROWS, _COLUMNS = 16, 9
_BEST, _CLOSE, _NEITHER = "*", "~", " "
_QUANTITIES = {"s": "time", "B": "bytes", "J": "energy"}
_KINDS = {"s": "times", "J": "energies", "g": "emissions"}


def first_table(
    compared: Sequence[Compared], chosen: Sequence[Row] = (), *, one_unit: bool = False
) -> tuple[TextTable, list[Note]]:
    """The table, and what stands below it.

    Args:
        compared: the runs.
        chosen: its figures; those that matter most where none are.
        one_unit: as of ``intervals.texts``.
    """
    averaged = any(len(one.runs) > 1 for one in compared)
    shown = list(chosen or main_rows(compared))
    if len(compared) > ABREAST and not chosen:
        main = f"accuracy.{main_model(compared)}.value"
        shown = sorted(shown, key=lambda row: _importance(row, main))[: _COLUMNS - 1 - averaged]
    verdicts = [judged(row, compared) for row in shown]
    cells = [texts(row, compared, bounds=False, one_unit=one_unit) for row in shown]
    if len(compared) > ABREAST:
        table = by_run(compared, cells, verdicts, seeds=averaged)
        notes = list(marks(verdicts, "best of its column"))
        notes += [] if chosen else ["every figure with --all"]
    else:
        table = TextTable(["", *map(head, compared)], cells)
        notes = list(_ahead(compared, verdicts))
    notes += _bounds(compared, shown)
    if averaged:
        notes.append(over_seeds([len(one.runs) for one in compared]))
    if any(".target." in f".{row.key}" for row in shown):
        whose = "" if chosen else f"{main_model(compared)} model's "
        notes.append(f"to a target: until the {whose}first evaluation at or above it")
    if any(row.unit == "g" for row in shown):
        notes += dict.fromkeys(run.carbon.boundary for one in compared for run in one.runs if run.carbon)
    return table, [Note(text, "dim") for text in notes]


def head(one: Compared) -> str:
    """A column's heading."""
    return one.name if len(one.runs) == 1 else f"{one.name}\n{len(one.runs)} seeds"


def main_rows(compared: Sequence[Compared]) -> list[Row]:
    """The rows of the table: the verdict's, but for what was useful, and what they do not say."""
    runs = [run for one in compared for run in one.runs]
    found = [row for row in verdict_rows(compared) if row.better or not row.key]
    found += [REFUSED] if any(run.refused for run in runs) else []
    found += [PEAK] if any(run.peak_bytes for run in runs) else []
    found += [WAITED_MOST] if any(run.path.keys() - {NOBODY} for run in runs) else []
    if len(found) > _ROWS or len(compared) > ABREAST:
        # No room for what is known of a part of the clients: the bounds of all stay.
        parts = [row.part for row in found if row.part]
        found = [row for row in found if row not in parts]
    return [*found, *list(measure_rows(runs, most=1))[: max(_ROWS - len(found), 0)]]


def by_run(
    compared: Sequence[Compared],
    columns: Sequence[Sequence[str]],
    verdicts: Sequence[Verdict],
    *,
    seeds: bool,
) -> TextTable:
    """A row for each run, with the number of its seeds or not; a column is a heading and each run's text."""
    shown = [
        [label.strip(), *(_marked(text, one, place) for place, text in enumerate(cells))]
        for (label, *cells), one in zip(columns, verdicts, strict=True)
    ]
    counts = [["seeds", *(str(len(one.runs)) for one in compared)]] if seeds else []
    heads, *rows = zip(["run", *(one.name for one in compared)], *counts, *shown, strict=True)
    return TextTable(heads, rows, drops=True)


def _importance(row: Row, main: str) -> int:
    """The main model's accuracy, what the target and all took, wasted energy, and the rest in their order."""
    if row.key == main:
        return 0
    if "wasted" not in row.key and row is not PEAK and row.unit in _QUANTITIES:
        return 1
    return 2 if "wasted" in row.key and row.unit == "J" else 3


def _marked(text: str, one: Verdict, place: int) -> str:
    """A group's figure, with a mark where it is the best of those that are judged."""
    if not _is_judged(one) or one.means[place] is None:
        return text
    return f"{text} {_mark(one) if place == one.winner or place in one.tied else _NEITHER}"


def _mark(one: Verdict) -> str:
    return _CLOSE if one.close else _BEST


def marks(verdicts: Sequence[Verdict], best: str) -> Iterator[str]:
    """What the marks mean, of those that stand in a table."""
    found = {_mark(one) for one in verdicts if _is_judged(one)}
    if _BEST in found:
        yield f"{_BEST} {best}"
    if _CLOSE in found:
        yield f"{_CLOSE} best, but not separable from all others over seeds"


def _is_judged(one: Verdict) -> bool:
    return one.winner is not None or 0 < len(one.tied) < len(one.texts)


def _ahead(compared: Sequence[Compared], verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Who is ahead in accuracy, in what the target took, and in what all took; and what seeds leave open."""
    until = f" to {target_name([run for one in compared for run in one.runs])}"
    said: dict[int, list[str]] = {}
    left_open = []
    for one in verdicts:
        kind, *rest = one.key.split(".")
        if kind == "accuracy":
            what = f"{rest[0]} accuracy"
        elif one.key in COSTS or (kind == "target" and "wasted" not in rest):
            what = _QUANTITIES[one.unit] + (until if kind == "target" else "")
        else:
            continue
        if one.close:
            left_open.append(what)
        elif one.winner is not None:
            said.setdefault(one.winner, []).append(what)
    if said:
        seeds = ", on one seed each" if all(len(one.runs) == 1 for one in compared) else ""
        each = (f"{compared[place].name} in {', '.join(won)}" for place, won in sorted(said.items()))
        yield f"ahead{seeds}: {'; '.join(each)}".replace("\n", ", ")
    if left_open:
        yield f"not separable over seeds: {', '.join(left_open)}"


def _bounds(compared: Sequence[Compared], shown: Sequence[Row]) -> Iterator[str]:
    """How far times and energies may be from what is shown: the widest of each kind."""
    found: dict[str, tuple[float, float]] = {}
    for row, one in ((row, one) for row in shown for one in compared):
        value = row.value(one)
        if value and value.between and row.unit in _KINDS and value.mean:
            low, high = value.between
            least, most = found.get(row.unit, (1.0, 1.0))
            found[row.unit] = (
                min(least, low / value.mean),
                max(most, math.inf if high is None else high / value.mean),
            )
    if found:
        words = (
            f"{_KINDS[unit]} at least {_times(low)}"
            if math.isinf(high)
            else f"{_KINDS[unit]} {_times(low)} to {_times(high)}"
            for unit, (low, high) in found.items()
        )
        yield f"bounds, where known: {', '.join(words)} what is shown; each with --all"


def _times(ratio: float) -> str:
    return f"{ratio:.2g}x" if ratio < 99.5 else f"{ratio:,.0f}x"  # noqa: PLR2004 - else it has an exponent
