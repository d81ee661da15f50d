"""Exported models and how they were verified: records, and tables of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Group, RenderableType

from edgefl.core.units import show_bytes, show_seconds, show_share
from edgefl.show.table import Column, Line, Table


@dataclass(frozen=True)
class Parity:
    """How an exported model compares with a reference.

    Attributes:
        samples: test samples compared.
        max_error: of the logits, over all samples and the batch sizes 1, 2, 7 and 64.
        within: whether all errors are within the tolerances.
        rtol, atol: the tolerances.
        agreement: the share of samples with the same largest logit.
        accuracy: of the exported model.
        torch_accuracy: of the reference, which is PyTorch except where two files are compared.
        passed: whether both compute the same: errors within the tolerances, and the same class everywhere.
    """

    samples: int
    max_error: float
    within: bool
    rtol: float
    atol: float
    agreement: float
    accuracy: float
    torch_accuracy: float
    passed: bool


@dataclass(frozen=True)
class Compact:
    """How a smaller model compares with the float32 one, both in ONNX Runtime.

    Attributes:
        samples: test samples compared.
        accuracy: of the smaller model.
        fp32_accuracy: of the float32 model.
        agreement: the share of samples with the same largest logit.
        fp32_bytes: size of the float32 model.
        latency_ms: median time of one image on one thread of this machine.
        fp32_latency_ms: the same for the float32 model, measured in alternation.
        calibrated_on: training samples that gave the ranges of activations; None without calibration.
        drop: the accuracy lost; negative if some was gained.
    """

    samples: int
    accuracy: float
    fp32_accuracy: float
    agreement: float
    fp32_bytes: int
    latency_ms: float
    fp32_latency_ms: float
    calibrated_on: int | None
    drop: float


@dataclass(frozen=True)
class Exported:
    """A verified model in a file.

    Attributes:
        path: the file.
        card: its model card.
        client: the client whose model it is; None for the global model.
        size_bytes: of the file.
        parity: float32 ONNX model against PyTorch.
        reported: the accuracy that the run reported for this model; None if it reported none.
        precision: of the file's weights.
        compact: the file against the float32 model; None for a float32 file.
        standing: caveats, such as that the client never trained; empty if there are none.
    """

    path: Path
    card: Path
    client: int | None
    size_bytes: int
    parity: Parity
    reported: float | None
    precision: str = "fp32"
    compact: Compact | None = None
    standing: str = ""


def exports(models: Sequence[Exported]) -> RenderableType:
    """Tables with a row for each model."""
    parts: list[RenderableType] = [_parity(models)]
    smaller = [one for one in models if one.compact]
    if smaller:
        against = "same class, drop and in float32: compared with the float32 model, both in ONNX Runtime"
        parts += [Line(), Table(_COMPACT, smaller), Line(against, "dim")]
    standings: dict[str, list[str]] = {}
    for one in models:
        standings.setdefault(one.standing, []).append(_whose(one))
    parts += [
        Line(f"{', '.join(whose)}: {standing}", "yellow") for standing, whose in standings.items() if standing
    ]
    return Group(*parts)


def _parity(models: Sequence[Exported]) -> Table:
    """The float32 models beside PyTorch's; only their smaller files, if any, are written."""
    first = "float32, not written" if any(one.compact for one in models) else "float32"
    columns = [
        Column(first, lambda one: _whose(one) if one.compact else one.path.name),
        Column("size", lambda one: one.compact.fp32_bytes if one.compact else one.size_bytes, show_bytes),
        Column("samples", "parity.samples", "{:,}".format),
        Column("max error", "parity.max_error", "{:.1e}".format),
        # Always 100%: no other model passes.
        Column("same class", "parity.agreement", show_share),
        Column("accuracy", "parity.accuracy", _PERCENT),
        Column("PyTorch", "parity.torch_accuracy", _PERCENT),
        Column("reported", "reported", _PERCENT),
    ]
    return Table(columns, models)


_PERCENT = partial(show_share, digits=2)
# The smaller files beside the float32 models.
_COMPACT = [
    Column("file", "path.name"),
    Column("size", "size_bytes", show_bytes),
    Column("of float32", lambda one: one.size_bytes / one.compact.fp32_bytes, show_share),
    Column("same class", "compact.agreement", partial(show_share, digits=1)),
    Column("accuracy", "compact.accuracy", _PERCENT),
    Column("drop", "compact.drop", _PERCENT),
    Column("1 image", lambda one: one.compact.latency_ms / 1000, show_seconds),
    Column("in float32", lambda one: one.compact.fp32_latency_ms / 1000, show_seconds),
]


def _whose(one: Exported) -> str:
    return "global" if one.client is None else f"client {one.client}"
