"""Published savings beside ours, as tables; see ``edgefl.planning.published``."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from edgefl.core.units import show_bytes, show_seconds
from edgefl.planning.costs import Comparison, Saved
from edgefl.report.tables import MISSING


def published(comparisons: Sequence[Comparison]) -> RenderableType:
    """Every claim, with the savings computed here above the published ones."""
    return Group(*(block for each in comparisons for block in _comparison(each)))


def _comparison(comparison: Comparison) -> list[RenderableType]:
    claim = comparison.claim
    columns = {head: column for head, column in _COLUMNS.items() if getattr(claim, head) is not None}
    table = Table(show_edge=False, header_style="bold")
    for head in ("model", "device"):
        table.add_column(head, overflow="fold")
    for head in columns:
        table.add_column(head, justify="right")
        table.add_column("saved", justify="right")
    for row in comparison.ours:
        table.add_row(row.model, row.device, *(cell for column in columns.values() for cell in column(row)))
    table.add_section()
    theirs = (cell for head in columns for cell in ("", f"up to {getattr(claim, head):.1%}"))
    table.add_row(Text("published", style="bold"), "", *theirs)
    title = f"{claim.method} against {claim.against}, {claim.exchange}: ours and {claim.source}"
    why = [Text(claim.why)] if claim.why else []
    return [Text(title, style="bold"), table, *why, Text("")]


def _latency(row: Saved) -> tuple[str, str]:
    """The time that the other method takes, and the share of it saved."""
    if row.latency is None or row.against_s is None:
        return MISSING, MISSING
    return show_seconds(row.against_s), f"{row.latency:.3%}"


def _memory(row: Saved) -> tuple[str, str]:
    """The memory that the other method takes, and the share of it saved."""
    if row.memory is None:
        return MISSING, MISSING
    return show_bytes(row.against_bytes), f"{row.memory:.3%}"


_COLUMNS = {"latency": _latency, "memory": _memory}
