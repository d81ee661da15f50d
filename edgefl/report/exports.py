"""Exports as tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from edgefl.core.units import show_bytes


def exports(found: Sequence[dict[str, Any]]) -> RenderableType:
    """One export a row; see ``edgefl.export.Exported``."""
    table = Table(show_edge=False, header_style="bold")
    for head in ("file", "size", "samples", "max error", "same class", "accuracy", "PyTorch", "reported"):
        table.add_column(head, justify="left" if head == "file" else "right", overflow="fold")
    for one in found:
        parity = one["parity"]
        table.add_row(
            Path(one["path"]).name,
            show_bytes(one["size_bytes"]),
            f"{parity['samples']:,}",
            f"{parity['max_error']:.1e}",
            f"{parity['agreement']:.0%}",
            f"{parity['accuracy']:.2%}",
            f"{parity['torch_accuracy']:.2%}",
            "-" if one["reported"] is None else f"{one['reported']:.2%}",
        )
    folder = Path(found[0]["path"]).parent
    return Group(table, Text(f"saved in {folder}, each with a model card (.md)"))
