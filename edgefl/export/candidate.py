"""A model under export: the value that passes through build, verify, compact, mobile and write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from torch import Tensor

from edgefl.export.graph import Served
from edgefl.export.model import Form
from edgefl.export.trained import LAST, Trained
from edgefl.report.exports import Compact, Ort, Parity

Precision: TypeAlias = Literal["fp32", "int8", "fp16"]
FP32: Final = "fp32"
INT8: Final = "int8"
FP16: Final = "fp16"


@dataclass(frozen=True)
class ExportOptions:
    """What to export.

    Attributes:
        client: the client whose own model to export; None is the global model.
        all_clients: export every client's own model instead.
        version: "last", "best" or a number.
        form: the model's input and outputs.
        precision: of the file's weights.
        max_drop: the accuracy that int8 and fp16 may lose, in [0, 1].
        ort: also write a file in ONNX Runtime's own format.
    """

    client: int | None = None
    all_clients: bool = False
    version: str = LAST
    form: Form = field(default_factory=Form)
    precision: Precision = FP32
    max_drop: float = 0.02
    ort: bool = False


UNVERIFIED = Parity(0, float("inf"), False, 0.0, 0.0, 0.0, 0.0, 0.0, False)


@dataclass(frozen=True)
class Candidate:
    """A model under export; each stage returns it with its own part filled in.

    Attributes:
        source: the trained version it comes from.
        client: the client whose model it is; None for the global model.
        options: what was asked for.
        path: the ONNX file to write.
        served: the model in PyTorch.
        test: images as the model takes them, and their labels, for every check.
        fp32: the float32 ONNX model.
        model: the ONNX model to write; ``fp32`` until it is made smaller.
        parity: float32 ONNX model against PyTorch.
        compact: ``model`` against ``fp32``; None if they are the same.
        ort: the model in ONNX Runtime's own format, if asked for.
        ort_files: content of that format's files, by path.
    """

    source: Trained
    client: int | None
    options: ExportOptions
    path: Path
    served: Served
    test: tuple[Tensor, Tensor]
    fp32: bytes
    model: bytes
    parity: Parity = UNVERIFIED
    compact: Compact | None = None
    ort: Ort | None = None
    ort_files: Mapping[Path, bytes] = field(default_factory=dict)

    @property
    def form(self) -> Form:
        """The model's input and outputs."""
        return self.options.form
