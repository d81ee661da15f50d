"""What a calibration measured beside what its device file predicts."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from edgefl.core.units import show_seconds
from edgefl.report.tables import MISSING


def calibration(found: dict[str, Any]) -> RenderableType:
    """A table of training steps and, where it was measured, one of inference."""
    tables = [_table("training step", found["steps"])]
    if found["inference"]:
        tables.append(_table("inference", found["inference"]))
    return Group(*tables)


def _table(title: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    table.add_column(title, no_wrap=True)
    table.add_column("")
    for head in ("measured", "spread", "predicted", "error"):
        table.add_column(head, justify="right")
    for row in rows:
        known = row["predicted_s"] is not None
        table.add_row(
            row["network"],
            row["use"],
            show_seconds(row["measured_s"]),
            f"{row['spread']:.0%}",
            show_seconds(row["predicted_s"]) if known else MISSING,
            f"{row['error']:+.0%}" if known else MISSING,
        )
    return table
