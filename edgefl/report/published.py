"""Published savings beside ours, as tables; see ``edgefl.planning.published``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from edgefl.core.units import show_bytes, show_seconds

_MISSING = "-"
_SAVED = {"latency": ("against_s", show_seconds), "memory": ("against_bytes", show_bytes)}


def published(found: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Every claim with ours below it."""
    return Group(*(one for claim in found for one in _claim(claim)))


def _claim(claim: Mapping[str, Any]) -> list[RenderableType]:
    saved = [name for name in _SAVED if claim[name] is not None]
    table = Table(show_edge=False, header_style="bold")
    for head in ("model", "device"):
        table.add_column(head, overflow="fold")
    for name in saved:
        table.add_column(name, justify="right")
        table.add_column("saved", justify="right")
    for row in claim["ours"]:
        table.add_row(row["model"], row["device"], *(cell for name in saved for cell in _cells(row, name)))
    table.add_section()
    theirs = (cell for name in saved for cell in ("", f"up to {claim[name]:.1%}"))
    table.add_row(Text("published", style="bold"), "", *theirs)
    title = f"{claim['method']} against {claim['against']}, {claim['exchange']}: ours and {claim['source']}"
    why = [Text(claim["why"])] if claim["why"] else []
    return [Text(title, style="bold"), table, *why, Text("")]


def _cells(row: Mapping[str, Any], name: str) -> tuple[str, str]:
    """What the method is compared with takes, and the share of it that ours saves."""
    key, show = _SAVED[name]
    if row[name] is None:
        return _MISSING, _MISSING
    return show(row[key]), f"{row[name]:.3%}"
