"""Exports as tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from edgefl.core.units import show_bytes, show_seconds


def exports(found: Sequence[dict[str, Any]]) -> RenderableType:
    """Tables of exports, one a row; see ``edgefl.export.Exported``."""
    parts: list[RenderableType] = [_parity(found)]
    if any(one["compact"] for one in found):
        parts += [Text(), _compact(found)]
    if any(one["ort"] for one in found):
        parts += [Text(), _ort(found)]
    folder = Path(found[0]["path"]).parent
    return Group(*parts, Text(f"saved in {folder}, each with a model card (.md)"))


def _parity(found: Sequence[dict[str, Any]]) -> Table:
    """The float32 models beside PyTorch's."""
    table = _table("float32", "size", "samples", "max error", "same class", "accuracy", "PyTorch", "reported")
    for one in found:
        parity, compact = one["parity"], one["compact"]
        table.add_row(
            _whose(one) if compact else Path(one["path"]).name,
            show_bytes(compact["fp32_bytes"] if compact else one["size_bytes"]),
            f"{parity['samples']:,}",
            f"{parity['max_error']:.1e}",
            f"{parity['agreement']:.0%}",
            f"{parity['accuracy']:.2%}",
            f"{parity['torch_accuracy']:.2%}",
            "-" if one["reported"] is None else f"{one['reported']:.2%}",
        )
    return table


def _compact(found: Sequence[dict[str, Any]]) -> Table:
    """The smaller files beside the float32 models."""
    table = _table("file", "size", "of float32", "same class", "accuracy", "drop", "1 image", "float32")
    for one in found:
        compact = one["compact"]
        table.add_row(
            Path(one["path"]).name,
            show_bytes(one["size_bytes"]),
            f"{one['size_bytes'] / compact['fp32_bytes']:.0%}",
            f"{compact['agreement']:.1%}",
            f"{compact['accuracy']:.2%}",
            f"{compact['drop']:.2%}",
            show_seconds(compact["latency_ms"] / 1000),
            show_seconds(compact["fp32_latency_ms"] / 1000),
        )
    return table


def _ort(found: Sequence[dict[str, Any]]) -> Table:
    """The files in ONNX Runtime's own format beside the ONNX ones."""
    table = _table("ORT format", "size", "max error", "same class", "accuracy")
    for one in found:
        ort = one["ort"]
        table.add_row(
            Path(ort["path"]).name,
            show_bytes(ort["size_bytes"]),
            f"{ort['max_error']:.1e}",
            f"{ort['agreement']:.1%}",
            f"{ort['accuracy']:.2%}",
        )
    return table


def _table(first: str, *heads: str) -> Table:
    table = Table(show_edge=False, header_style="bold")
    table.add_column(first, overflow="fold")
    for head in heads:
        table.add_column(head, justify="right", overflow="fold")
    return table


def _whose(one: dict[str, Any]) -> str:
    return "global" if one["client"] is None else f"client {one['client']}"
