"""What a model sees in images, as a table; see ``edgefl.export.infer``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from edgefl.report.fitted import Fitted

_HEADS = ("image", "class", "probability", "next", "changed")


def guesses(found: dict[str, Any]) -> RenderableType:
    """One image a row: its likeliest classes, and what was done to it to fit the model.

    Images of one name are told apart by their folders.
    """
    names = Counter(Path(one["file"]).name for one in found["images"])
    rows = []
    for one in found["images"]:
        (first, *rest), name = one["classes"], Path(one["file"]).name
        rows.append(
            (
                name if names[name] == 1 else one["file"],
                first["name"],
                f"{first['probability']:.1%}",
                ", ".join(f"{other['name']} {other['probability']:.1%}" for other in rest) or "-",
                one["changes"] or "-",
            )
        )
    return Fitted(_HEADS, rows, left=("class",), wraps=("next", "changed"))
