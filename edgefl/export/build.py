"""The first stage: the predictor of a run as a float32 ONNX model, with test samples to check it on."""

from dataclasses import dataclass, field
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edgefl.data.batching import normalised
from edgefl.export.graph import Served, to_onnx
from edgefl.export.model import ExportForm
from edgefl.export.trained import LAST, TrainedVersion

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
        precision: of the file's weights.
        max_drop: the accuracy that int8 and fp16 may lose, in [0, 1].
    """

    client: int | None = None
    all_clients: bool = False
    version: str = LAST
    form: ExportForm = field(default_factory=ExportForm)
    precision: Precision = FP32
    max_drop: float = 0.02


@dataclass(frozen=True)
class Candidate:
    """A model under export.

    Attributes:
        path: the ONNX file to write.
        served: the model in PyTorch.
        test: images as the model takes them, and their labels, for every check.
        fp32: the float32 ONNX model.
    """

    source: TrainedVersion
    client: int | None
    options: ExportOptions
    path: Path
    served: Served
    test: tuple[Tensor, Tensor]
    fp32: bytes

    @property
    def form(self) -> ExportForm:
        return self.options.form


def build(source: TrainedVersion, client: int | None, options: ExportOptions, path: Path) -> Candidate:
    """Exports a client's predictor (None: the global one) to ONNX in memory; ``path`` is written in the end.

    Raises:
        ExportError: torch cannot export the model.
        UserError: the run has no such model.
    """
    form, spec = options.form, source.federation.spec
    served = Served(source.predictor(client), spec, form).eval()
    fp32 = to_onnx(served, spec.shape, form, _metadata(source, client, form))
    return Candidate(source, client, options, path, served, _test_samples(source, client, form), fp32)


def _metadata(source: TrainedVersion, client: int | None, form: ExportForm) -> dict[str, Any]:
    """What is written into the file: texts as they are, everything else as JSON.

    ``shape`` is one sample's (channels, height, width); ``mean`` and ``std`` are its channels' in [0, 1].
    ``round`` counts from 0 and is -1 before the first; ``accuracy`` is what the run reported, if anything.
    """
    spec, meta = source.federation.spec, source.meta
    return {
        "class_names": spec.class_names,
        "input": "float32 NCHW, (pixel / 255 - mean) / std" if form.raw_input else "uint8 NCHW, 0 to 255",
        "shape": spec.shape,
        "mean": spec.mean,
        "std": spec.std,
        "dataset": spec.name,
        "scenario": meta["name"],
        "run_id": meta["run_id"],
        "method": meta["method"],
        "model": source.model(client),
        "client": "global" if client is None else client,
        "version": source.version,
        "round": source.round,
        "accuracy": source.reported.get(client),
        "precision": FP32,
        "edgefl": installed("edgefl-emulator"),
    }


def _test_samples(source: TrainedVersion, client: int | None, form: ExportForm) -> tuple[Tensor, Tensor]:
    """The test samples that a model is scored on; all of them where a client has none of its own."""
    federation = source.federation
    own = federation.test if client is None else federation.test_parts[client]
    indices = own if len(own) else federation.test
    return images(source, indices, "test", form), federation.test_y[torch.from_numpy(indices)]


def images(
    source: TrainedVersion, indices: NDArray[np.int64], split: Literal["train", "test"], form: ExportForm
) -> Tensor:
    """Images of a run's dataset as an exported model takes them: (len(indices), C, H, W)."""
    federation = source.federation
    if form.raw_input:
        return normalised(federation, indices, split).contiguous()
    pixels = federation.train_x if split == "train" else federation.test_x
    if pixels is None:
        raise AssertionError("an export reads its dataset's pixels")
    return pixels[torch.from_numpy(indices)].contiguous()
