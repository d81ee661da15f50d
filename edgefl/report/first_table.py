"""The figures by which runs are judged, in one table that fits a screen, and who is ahead.

Of up to three runs or averages it has a column for each; of more a row for each, and the figures that matter
most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain

from edgefl.report.averages import Compared, Row
from edgefl.report.estimates import over_seeds
from edgefl.report.formats.texts import Note, TextTable
from edgefl.report.measure_rows import measure_rows
from edgefl.report.rows import COSTS, PEAK, REFUSED, WAITED_MOST
from edgefl.report.targets import target_name
from edgefl.report.verdict import Verdict, judged, main_model, verdict_rows

ABREAST = 3
"""Runs that stand side by side; more have a row each."""
# Rows where runs stand side by side; columns, with the name, where they do not.
_ROWS, _COLUMNS = 16, 9
_BEST, _CLOSE, _NEITHER = "*", "~", " "
_QUANTITIES = {"s": "time", "B": "bytes", "J": "energy"}
_KINDS = {"s": "times", "J": "energies", "g": "emissions"}


def first_table(compared: Sequence[Compared]) -> tuple[TextTable, list[Note]]:
    """The table, and what stands below it."""
    found = _figures(compared)
    verdicts = [judged(row, compared) for row in found]
    if len(compared) > ABREAST:
        table, shown = _by_run(compared, found, verdicts)
        notes = [f"{_BEST} best of its column"] if any(map(_is_judged, verdicts)) else []
        if any(one.close for one in verdicts):
            notes.append(f"{_CLOSE} best, but not separable from all others over seeds")
    else:
        cells = [[row.label, *map(row.plain, compared)] for row in found]
        table, shown = TextTable(["", *map(head, compared)], cells), found
        notes = list(_ahead(compared, verdicts))
    notes += _bounds(compared, shown)
    if any(len(one.runs) > 1 for one in compared):
        notes.append(over_seeds([len(one.runs) for one in compared]))
    if any(".target." in f".{row.key}" for row in shown):
        notes.append(f"to a target: until the {main_model(compared)} model's first evaluation at or above it")
    notes += dict.fromkeys(run.carbon.boundary for one in compared for run in one.runs if run.carbon)
    return table, [Note(text, "dim") for text in notes]


def head(one: Compared) -> str:
    """A column's heading."""
    return one.name if len(one.runs) == 1 else f"{one.name}\n{len(one.runs)} seeds"


def _figures(compared: Sequence[Compared]) -> list[Row]:
    """The verdict's, but for what was useful, and what they do not say."""
    runs = [run for one in compared for run in one.runs]
    found = [row for row in verdict_rows(compared) if row.better or not row.key]
    found += [REFUSED] if any(run.refused for run in runs) else []
    found += [PEAK] if any(run.peak_bytes for run in runs) else []
    found += [WAITED_MOST] if any(run.waited_for_devices for run in runs) else []
    return [*found, *list(measure_rows(runs, most=1))[: max(_ROWS - len(found), 0)]]


def _by_run(
    compared: Sequence[Compared], found: Sequence[Row], verdicts: Sequence[Verdict]
) -> tuple[TextTable, list[Row]]:
    """A row for each run, and the figures that it shows."""
    main = f"accuracy.{main_model(compared)}.value"
    order = sorted(zip(found, verdicts, strict=True), key=lambda one: _importance(one[0], main))
    seeds = (
        [Row("seeds", lambda one: str(len(one.runs)))] if any(len(one.runs) > 1 for one in compared) else []
    )
    shown = order[: _COLUMNS - 1 - len(seeds)]
    cells = [
        [one.name, *(row.cell(one) for row in seeds), *(_marked(*each, one, place) for each in shown)]
        for place, one in enumerate(compared)
    ]
    heads = ["run", *(row.label.strip() for row in chain(seeds, (row for row, _ in shown)))]
    return TextTable(heads, cells, drops=True), [row for row, _ in shown]


def _importance(row: Row, main: str) -> int:
    """The main model's accuracy, what the target and all took, wasted energy, and the rest in their order."""
    if row.key == main:
        return 0
    if "wasted" not in row.key and row is not PEAK and row.unit in _QUANTITIES:
        return 1
    return 2 if "wasted" in row.key and row.unit == "J" else 3


def _marked(row: Row, one: Verdict, group: Compared, place: int) -> str:
    text = row.plain(group)
    if not _is_judged(one):
        return text
    best = place == one.winner or (place in one.tied and len(one.tied) < len(one.texts))
    return f"{text} {(_CLOSE if one.close else _BEST) if best else _NEITHER}"


def _is_judged(one: Verdict) -> bool:
    return one.winner is not None or 0 < len(one.tied) < len(one.texts)


def _ahead(compared: Sequence[Compared], verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Who is ahead in accuracy and in what the target took, or all took where nobody reached one."""
    to_target = [one for one in verdicts if one.key.startswith("target.") and "wasted" not in one.key]
    reached = any(one.winner is not None for one in to_target)
    costs = to_target if reached else [one for one in verdicts if one.key in COSTS]
    until = f" to {target_name([run for one in compared for run in one.runs])}" if reached else ""
    accuracies = [one for one in verdicts if one.key.startswith("accuracy.")]
    said = []
    for place, group in enumerate(compared):
        won = [
            *(f"{one.key.split('.')[1]} accuracy{_open(one)}" for one in accuracies if one.winner == place),
            *(f"{_QUANTITIES[one.unit]}{until}{_open(one)}" for one in costs if one.winner == place),
        ]
        if won:
            said.append(f"{group.name} in {', '.join(won)}".replace("\n", ", "))
    if said:
        seeds = ", on one seed each" if all(len(one.runs) == 1 for one in compared) else ""
        yield f"ahead{seeds}: {'; '.join(said)}"


def _open(one: Verdict) -> str:
    return " (not separable over seeds)" if one.close else ""


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
            f"{_KINDS[unit]} at least {low:.2g}x"
            if math.isinf(high)
            else f"{_KINDS[unit]} {low:.2g}x to {high:.2g}x"
            for unit, (low, high) in found.items()
        )
        yield f"bounds: {', '.join(words)} what is shown; each with --all"
