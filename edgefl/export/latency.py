"""What was measured of a model, kept beside its file and shown in its card."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgefl.core.errors import UserError
from edgefl.core.files import atomically
from edgefl.report.latency import cells

_TITLE = "## Latency"
_HEADS = ("runtime", "threads", "load", "p50", "p90", "p99", "samples a second", "memory", "runs")


def kept(model: Path) -> Path:
    """The file that keeps what was measured of a model."""
    return model.with_suffix(".bench.json")


def card_of(model: Path) -> str:
    """The model card beside a model's file.

    Raises:
        UserError: there is none.
    """
    try:
        return model.with_suffix(".md").read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{model.name} has no model card beside it", where="--card", hint="edgefl export writes one"
        ) from error


def keep(found: Mapping[str, Any]) -> None:
    """Keeps what ``edgefl.export.bench`` measured, and shows it in the model's card.

    Raises:
        UserError: the model has no card.
    """
    model = Path(found["model"])
    page = card_of(model)
    atomically(kept(model), json.dumps({**found, "machine": _machine()}, indent=2).encode())
    atomically(model.with_suffix(".md"), _replaced(page, latency(model, model.read_bytes())).encode())


def latency(model: Path, content: bytes) -> list[str]:
    """The card's lines about latency; none where this very content was never measured.

    Args:
        model: the model's file.
        content: what it holds, or will hold as soon as its card is written.
    """
    try:
        found = json.loads(kept(model).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    digest = hashlib.sha256(content).hexdigest()
    if found.get("sha256") != digest:
        return []
    rows = [(row["runtime"], *cells(row)) for row in found["measured"]]
    batch = "one sample" if found["batch"] == 1 else f"{found['batch']:,} samples"
    return [
        _TITLE,
        "",
        f"Measured on {found['machine']}, {batch} a call, each row in a fresh process.",
        "",
        _row(_HEADS),
        _row(["---", *["---:"] * (len(_HEADS) - 1)]),
        *map(_row, rows),
        "",
    ]


def _row(texts: Any) -> str:
    return f"| {' | '.join(texts)} |"


def _machine() -> str:
    return " ".join(filter(None, (platform.system(), platform.machine(), _processor())))


def _processor() -> str:
    """The processor's name; empty where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _replaced(page: str, lines: list[str]) -> str:
    """A card with its section about latency as given; at the end where it had none."""
    before, _, behind = page.partition(f"\n{_TITLE}\n")
    _, found, after = behind.partition("\n## ")
    rest = f"## {after}" if found else ""
    return "\n".join([before.rstrip("\n"), "", *lines]) + rest
