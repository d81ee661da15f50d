"""Plain tables, and texts of cells that several tables share."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from edgefl.core.energy import EnergyTotal
from edgefl.core.units import show_joules

MISSING = "-"
UNKNOWN = "unknown"


def joules(value: float | None) -> str:
    """An energy, or that it is unknown."""
    return UNKNOWN if value is None else show_joules(value)


def energy(total: EnergyTotal) -> str:
    """An energy with the number of clients that it covers, where that is not all."""
    known, clients = total.energy_known, total.energy_clients
    partial = total.joules is not None and known < clients
    return joules(total.joules) + (f" ({known} of {clients} clients)" if partial else "")


def named(title: str, rows: Sequence[tuple[str, ...]], heads: Sequence[str]) -> Table:
    """A plain table of texts."""
    table = Table(title=title or None, title_justify="left", show_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
