"""What a model sees in images, as a table; see ``edgefl.export.infer``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table


def guesses(found: dict[str, Any]) -> RenderableType:
    """One image a row: its likeliest classes, and what was done to it to fit the model."""
    table = Table(show_edge=False, header_style="bold")
    for head in ("image", "class", "probability", "next", "changed"):
        table.add_column(head, justify="right" if head == "probability" else "left", overflow="fold")
    for one in found["images"]:
        first, *rest = one["classes"]
        table.add_row(
            Path(one["file"]).name,
            first["name"],
            f"{first['probability']:.1%}",
            ", ".join(f"{other['name']} {other['probability']:.1%}" for other in rest) or "-",
            one["changes"] or "-",
        )
    return table
