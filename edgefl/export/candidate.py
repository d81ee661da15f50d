"""A model under export: the value that passes through build, verify, compact, mobile and write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from torch import Tensor

from edgefl.export.graph import Served
from edgefl.export.model import Form
from edgefl.export.trained import LAST, Trained

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
        precision: "fp32", "int8" or "fp16".
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


class Samples(NamedTuple):
    """Test images as the exported model takes them, and their labels."""

    images: Tensor
    labels: Tensor


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
    """

    samples: int
    max_error: float
    within: bool
    rtol: float
    atol: float
    agreement: float
    accuracy: float
    torch_accuracy: float

    @property
    def passed(self) -> bool:
        """Whether both compute the same: errors within the tolerances, and the same class everywhere."""
        return self.within and self.agreement == 1.0

    def __str__(self) -> str:
        return (
            f"max error {self.max_error:.2g}, "
            f"top-1 agreement {self.agreement:.2%} on {self.samples:,} samples, "
            f"accuracy {self.accuracy:.2%} against PyTorch's {self.torch_accuracy:.2%}"
        )


UNVERIFIED: Final = Parity(
    0, float("inf"), within=False, rtol=0, atol=0, agreement=0, accuracy=0, torch_accuracy=0
)


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
    """

    samples: int
    accuracy: float
    fp32_accuracy: float
    agreement: float
    fp32_bytes: int
    latency_ms: float
    fp32_latency_ms: float
    calibrated_on: int | None

    @property
    def drop(self) -> float:
        """The accuracy lost; negative where some was gained."""
        return self.fp32_accuracy - self.accuracy


@dataclass(frozen=True)
class Ort:
    """A model in ONNX Runtime's own format, beside its ONNX file.

    Attributes:
        path: the file.
        config: the operators it needs, for a reduced build of ONNX Runtime.
        size_bytes: of the file.
        accuracy: of the file.
        max_error: the largest error of a logit against the ONNX file.
        agreement: the share of samples with the same largest logit as the ONNX file.
    """

    path: Path
    config: Path
    size_bytes: int
    accuracy: float
    max_error: float
    agreement: float


@dataclass(frozen=True)
class Candidate:
    """A model under export; each stage returns it with its own part filled in.

    Attributes:
        source: the trained version it comes from.
        client: the client whose model it is; None for the global model.
        options: what was asked for.
        path: the ONNX file to write.
        served: the model in PyTorch.
        test: the samples that every check uses.
        fp32: the float32 ONNX model.
        model: the ONNX model to write; ``fp32`` until it is made smaller.
        parity: float32 ONNX model against PyTorch.
        compact: ``model`` against ``fp32``; None where they are the same.
        ort: the model in ONNX Runtime's own format, if asked for.
        ort_files: content of that format's files, by path.
    """

    source: Trained
    client: int | None
    options: ExportOptions
    path: Path
    served: Served
    test: Samples
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
        ort: the same model in ONNX Runtime's own format, if asked for.
        standing: caveats, such as that the client never trained; empty if there are none.
    """

    path: Path
    card: Path
    client: int | None
    size_bytes: int
    parity: Parity
    reported: float | None
    precision: Precision = FP32
    compact: Compact | None = None
    ort: Ort | None = None
    standing: str = ""

    def plain(self) -> dict[str, Any]:
        """The JSON document of ``edgefl export --json``."""
        document = {
            **asdict(self),
            "path": str(self.path),
            "card": str(self.card),
            "parity": {**asdict(self.parity), "passed": self.parity.passed},
        }
        if self.compact is not None:
            document["compact"]["drop"] = self.compact.drop
        if self.ort is not None:
            document["ort"] |= {"path": str(self.ort.path), "config": str(self.ort.config)}
        return document
