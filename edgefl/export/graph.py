"""Converts a predictor to an ONNX model that takes pixels."""

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from edgefl.compute.onnx_exporter import OPSET, onnx_model
from edgefl.core.errors import EdgeflError, in_one_line
from edgefl.data.dataset import Spec
from edgefl.export.model import PREFIX, ExportForm
from edgefl.protocol import Predictor, Tree, tree_map

_MOST_BYTES = 2**31 - 1


class ExportError(EdgeflError):
    """The model could not be exported, or failed a check; its files were not written."""

    exit_status = 1


@contextmanager
def explained(failure: str) -> Iterator[None]:
    """Turns whatever a library raises into one error, and silences its warnings about its own internals.

    Raises:
        ExportError: the failure, with the first line of its root cause.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (ExportError, MemoryError):
        raise
    except Exception as error:
        cause: BaseException = error
        # Libraries wrap theirs in pages of advice.
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise ExportError(f"{failure}: {in_one_line(cause)}") from error


class Served(nn.Module):
    """A predictor as a module with its weights as buffers, after the preprocessing of pixels."""

    mean: Tensor
    std: Tensor

    def __init__(self, predictor: Predictor, spec: Spec, form: ExportForm) -> None:
        super().__init__()
        self._logits, self._form = predictor.logits, form
        # The weights' tree, with the name of a buffer in place of every tensor.
        self._names = tree_map(self._buffer, predictor.weights)
        channels = (1, len(spec.mean), 1, 1)
        self.register_buffer("mean", torch.tensor(spec.mean).view(channels))
        self.register_buffer("std", torch.tensor(spec.std).view(channels))

    def _buffer(self, tensor: Tensor) -> str:
        name = f"weight{len(self._buffers)}"
        self.register_buffer(name, tensor.detach().clone())
        return name

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """(B, C, H, W) uint8, or normalised float32 -> logits (B, classes), and any probabilities."""
        if not self._form.raw_input:
            x = (x.to(torch.float32) / 255 - self.mean) / self.std
        logits = self._logits(self.weights(), x)
        return (logits, logits.softmax(dim=-1)) if self._form.softmax else logits

    def weights(self) -> Tree:
        return tree_map(partial(getattr, self), self._names)


def to_onnx(served: Served, shape: tuple[int, ...], form: ExportForm, facts: Mapping[str, Any]) -> bytes:
    """The module as an ONNX model in bytes; its batch is a dynamic axis named "batch".

    Args:
        shape: one sample's (channels, height, width).
        facts: for the model's metadata: texts as they are, everything else as JSON.

    Raises:
        ExportError: the exporter or a check failed.
    """
    example = torch.zeros(2, *shape) if form.raw_input else torch.zeros(2, *shape, dtype=torch.uint8)
    with explained("torch cannot export the model"):
        model = onnx_model(served, example, input_name=form.input, output_names=form.outputs)
    for part in (model.graph, *model.graph.node):
        # Stack traces: a third of a small file, with paths of the machine that wrote it.
        del part.metadata_props[:]
    content = finished(model, form, facts)
    if len(content) > _MOST_BYTES:
        raise ExportError(f"the model has {len(content):,} bytes; an ONNX file holds at most {_MOST_BYTES:,}")
    return content


def finished(model: Any, form: ExportForm, facts: Mapping[str, Any]) -> bytes:
    """A model in bytes, with facts in its metadata that replace those of the same names.

    Raises:
        ExportError: a check failed.
    """
    texts = {
        f"{PREFIX}{key}": text if isinstance(text, str) else json.dumps(text) for key, text in facts.items()
    }
    kept = [(one.key, one.value) for one in model.metadata_props if one.key not in texts]
    del model.metadata_props[:]
    for key, value in [*kept, *texts.items()]:
        model.metadata_props.add(key=key, value=value)
    check(model, form)
    content: bytes = model.SerializeToString()
    return content


def check(model: Any, form: ExportForm) -> None:
    """Checks that the model is what runtimes expect.

    Raises:
        ExportError: the model is invalid, has another opset or other names, or data outside the file.
    """
    import onnx

    try:
        onnx.checker.check_model(model, full_check=True)
        onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ExportError(f"the exported model is not valid ONNX: {error}") from error
    opset = next(one.version for one in model.opset_import if one.domain in {"", "ai.onnx"})
    if opset != OPSET:
        raise ExportError(f"the exporter wrote opset {opset} instead of {OPSET}")
    names = [one.name for one in model.graph.input], [one.name for one in model.graph.output]
    if names != ([form.input], form.outputs):
        raise ExportError(f"the exporter named inputs and outputs {names}")
    batch = model.graph.input[0].type.tensor_type.shape.dim[0].dim_param
    if batch != "batch":
        raise ExportError(
            "the model fixes how many images it takes",
            hint="take the number of images as x.shape[0], not as len(x), in its forward",
        )
    outside = [one.name for one in model.graph.initializer if one.data_location == onnx.TensorProto.EXTERNAL]
    if outside:
        raise ExportError(f"the exporter stored {len(outside)} tensors outside the file")
