"""All figures, the runs, and the settings in which they differ."""

from __future__ import annotations

from collections.abc import Iterator

from edgefl.show.page.records import (
    PageTable,
    Section,
    TableCell,
    Told,
    across,
    rounds_cell,
    setting,
    shortened,
)
from edgefl.show.table import MISSING
from edgefl.show.values import cell


def section(told: Told) -> Section:
    """What `edgefl compare` shows."""
    cells = [
        [TableCell(cell(value, row.metric.unit), value.mean if value else None) for value in row.values]
        for row in told.figures
    ]
    labels = [row.metric.label for row in told.figures]
    table = across("All figures, as edgefl compare shows them", told.names, labels, cells)
    notes = list(told.signs)
    if any(value is None for row in told.figures for value in row.values):
        notes.append(f"{MISSING} stands where a run has no such figure.")
    return Section("figures", "All figures", tables=[table], notes=notes)


def runs(told: Told) -> Section:
    """A row for each run."""
    head = ["run", "method", "data set", "seed", "clients", "refused", "rounds", "engine", "status", "folder"]
    rows = [
        [
            TableCell(shortened(run.name)),
            TableCell(run.method),
            TableCell(run.dataset or "unknown"),
            TableCell(str(run.seed)),
            TableCell(f"{run.clients:,}", run.clients),
            TableCell(f"{run.refused:,}", run.refused),
            TableCell(rounds_cell(run), run.rounds),
            TableCell(run.engine),
            TableCell(run.status),
            TableCell(run.run_dir),
        ]
        for run in (one.summary for one in told.runs)
    ]
    return Section("runs", "Runs", tables=[PageTable("The runs", head, rows), *_settings_table(told)])


def _settings_table(told: Told) -> Iterator[PageTable]:
    cells = [[TableCell(setting(value, key)) for value in values] for key, values in told.settings.items()]
    if cells:
        yield across("The settings in which they differ", told.names, list(told.settings), cells)
