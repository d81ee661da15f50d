"""Exports as tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from edgefl.core.units import show_bytes, show_seconds
from edgefl.report.fitted import Fitted

_PROVED = ("size", "samples", "max error", "same class", "accuracy", "PyTorch", "reported")
_SMALLER = ("file", "size", "of float32", "same class", "accuracy", "drop", "1 image", "float32's")
_ORT = ("ORT format", "size", "max error", "same class", "accuracy")


def exports(found: Sequence[dict[str, Any]]) -> RenderableType:
    """Tables of exports, one a row; see ``edgefl.export.Exported``."""
    parts: list[RenderableType] = [_parity(found)]
    if any(one["compact"] for one in found):
        parts += [Text(), _compact(found)]
        against = "same class, drop and float32's time: against that model, both in ONNX Runtime"
        parts.append(Text(against, style="dim"))
    if any(one["ort"] for one in found):
        parts += [Text(), _ort(found)]
        parts.append(Text("max error and same class: against the ONNX file", style="dim"))
    standings: dict[str, list[str]] = {}
    for one in found:
        standings.setdefault(one["standing"], []).append(_whose(one))
    parts += [
        Text(f"{', '.join(whose)}: {standing}", style="yellow")
        for standing, whose in standings.items()
        if standing
    ]
    return Group(*parts)


def _parity(found: Sequence[dict[str, Any]]) -> Fitted:
    """The float32 models beside PyTorch's; of a smaller file's, only that file is written."""
    rows = []
    for one in found:
        parity, compact = one["parity"], one["compact"]
        rows.append(
            (
                _whose(one) if compact else Path(one["path"]).name,
                show_bytes(compact["fp32_bytes"] if compact else one["size_bytes"]),
                f"{parity['samples']:,}",
                f"{parity['max_error']:.1e}",
                f"{parity['agreement']:.0%}",
                f"{parity['accuracy']:.2%}",
                f"{parity['torch_accuracy']:.2%}",
                "-" if one["reported"] is None else f"{one['reported']:.2%}",
            )
        )
    head = "float32, not written" if any(one["compact"] for one in found) else "float32"
    # The gate lets nothing pass that has another class for any sample.
    return Fitted((head, *_PROVED), rows, yields=("same class", "samples", "size"))


def _compact(found: Sequence[dict[str, Any]]) -> Fitted:
    """The smaller files beside the float32 models."""
    rows = []
    for one in found:
        compact = one["compact"]
        rows.append(
            (
                Path(one["path"]).name,
                show_bytes(one["size_bytes"]),
                f"{one['size_bytes'] / compact['fp32_bytes']:.0%}",
                f"{compact['agreement']:.1%}",
                f"{compact['accuracy']:.2%}",
                f"{compact['drop']:.2%}",
                show_seconds(compact["latency_ms"] / 1000),
                show_seconds(compact["fp32_latency_ms"] / 1000),
            )
        )
    return Fitted(_SMALLER, rows, yields=("of float32", "same class", "float32's", "1 image"))


def _ort(found: Sequence[dict[str, Any]]) -> Fitted:
    """The files in ONNX Runtime's own format beside the ONNX ones."""
    rows = []
    for one in found:
        ort = one["ort"]
        rows.append(
            (
                Path(ort["path"]).name,
                show_bytes(ort["size_bytes"]),
                f"{ort['max_error']:.1e}",
                f"{ort['agreement']:.1%}",
                f"{ort['accuracy']:.2%}",
            )
        )
    return Fitted(_ORT, rows, yields=("max error", "same class"))


def _whose(one: dict[str, Any]) -> str:
    return "global" if one["client"] is None else f"client {one['client']}"
