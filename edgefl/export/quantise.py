"""Conversion of a float32 model to int8, by static quantisation, and to float16."""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from edgefl.export.graph import explained, finished
from edgefl.export.model import ExportForm

_BATCH = 64

# Products, and operators between them: a chain of these runs in integers. Preprocessing, normalisation of
# features and probabilities are not among them and stay in float32.
_PRODUCTS = ("Conv", "Gemm", "MatMul")
_BETWEEN = (
    *("Add", "Relu", "Clip", "Concat"),
    *("MaxPool", "AveragePool", "GlobalAveragePool"),
    *("Flatten", "Reshape", "Transpose", "Squeeze", "Unsqueeze"),
)
# Sums of squares leave the range of float16 long before their roots do.
_SUMS_OF_SQUARES = ("ReduceL2", "ReduceSumSquare", "InstanceNormalization", "GroupNormalization")


def to_int8(model: bytes, form: ExportForm, images: Tensor, facts: Mapping[str, Any]) -> bytes:
    """The model with int8 weights and activations, in QDQ form: float operators between pairs of
    QuantizeLinear and DequantizeLinear, which runtimes fuse to integer ones.

    Weights have one scale per output channel and use 7 of the 8 bits; activations have one scale per tensor.

    Args:
        form: its input and outputs, which stay the same.
        images: training samples as the input takes them; they give the ranges of activations.
        facts: added to the metadata, or replacing what is there.

    Raises:
        ExportError: ONNX Runtime cannot quantise it.
    """  # noqa: D205 - one sentence needs two lines
    import onnx

    with explained("ONNX Runtime cannot quantise the model"), tempfile.TemporaryDirectory() as folder:
        given, prepared, made = (Path(folder) / f"{name}.onnx" for name in ("given", "prepared", "made"))
        given.write_bytes(model)
        with _tools():
            from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
            from onnxruntime.quantization.shape_inference import quant_pre_process

        # Symbolic shape inference fails on graphs of torch's exporter, and nothing here needs it.
        quant_pre_process(given, prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared,
            made,
            _Reader(form, images),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=[*_PRODUCTS, *_BETWEEN],
            nodes_to_exclude=_before_floats(onnx.load(prepared).graph),
            per_channel=True,
            # Weights of 7 bits: sums of two 8-bit products overflow the 16 bits that x86 without VNNI has for
            # them. With 7 bits every processor computes the same.
            reduce_range=True,
            activation_type=QuantType.QInt8,
            weight_type=QuantType.QInt8,
        )
        quantised = onnx.load(made)
    return _finished(quantised, model, form, facts)


def _before_floats(graph: Any) -> list[str]:
    """The nodes between products and operators that stay in float, such as the normalisation of features.

    They stay in float, too. If two float operators read a rectifier's integers, each through its own
    conversion, ONNX Runtime does not fuse the product before it; that product then runs in float, and
    converts its weights in every call.
    """
    readers: dict[str, list[Any]] = defaultdict(list)
    for node in graph.node:
        for name in node.input:
            readers[name].append(node)
    excluded: list[str] = []
    for node in reversed(graph.node):
        after = [reader for name in node.output for reader in readers[name]]
        if node.op_type in _BETWEEN and after and not any(_integer(reader, excluded) for reader in after):
            excluded.append(node.name)
    return excluded


def _integer(node: Any, excluded: Sequence[str]) -> bool:
    return node.op_type in _PRODUCTS or (node.op_type in _BETWEEN and node.name not in excluded)


class _Reader:
    """Calibration samples as ONNX Runtime reads them."""

    def __init__(self, form: ExportForm, images: Tensor) -> None:
        self._input, self._chunks = form.input, iter(torch.split(images, _BATCH))

    def get_next(self) -> dict[str, Any] | None:
        """The next batch; None at the end."""
        chunk = next(self._chunks, None)
        return None if chunk is None else {self._input: chunk.numpy()}


def to_fp16(model: bytes, form: ExportForm, facts: Mapping[str, Any]) -> bytes:
    """The model with float16 weights and activations; inputs and outputs keep their types.

    Facts are added to the metadata, or replace what is there.

    Raises:
        ExportError: the model cannot be converted.
    """
    import onnx

    with explained("ONNX Runtime cannot convert the model to float16"):
        with _tools():
            from onnxruntime.transformers import float16
            from onnxruntime.transformers.onnx_model import OnnxModel
        given = onnx.load_from_string(model)
        # The exporter lists weights among the results, and the converter would take them for results.
        weights = {one.name for one in given.graph.initializer}
        results = [one for one in given.graph.value_info if one.name not in weights]
        del given.graph.value_info[:]
        given.graph.value_info.extend(results)
        converted = float16.convert_float_to_float16(
            given,
            keep_io_types=True,
            op_block_list=[*float16.DEFAULT_OP_BLOCK_LIST, *_SUMS_OF_SQUARES],
        )
        # The converter appends its casts at the end, after the nodes that read them.
        OnnxModel.graph_topological_sort(converted.graph)
    return _finished(converted, model, form, facts)


@contextmanager
def _tools() -> Iterator[None]:
    """Allows imports of ONNX Runtime's tools, some of which find each other only by ``sys.path``.

    Their package adds its folder there for good when it is first imported, which would hide users' modules of
    the same names. Here the folder is there only while the imports run, in whichever order.
    """
    before = list(sys.path)
    import onnxruntime.transformers

    sys.path[:] = [*before, *onnxruntime.transformers.__path__]
    try:
        yield
    finally:
        sys.path[:] = before


def _finished(new: Any, model: bytes, form: ExportForm, facts: Mapping[str, Any]) -> bytes:
    """The new model with the old one's metadata, checked like the old one."""
    import onnx

    old = onnx.load_from_string(model)
    del new.metadata_props[:]
    new.metadata_props.extend(old.metadata_props)
    # ONNX Runtime's optimizer imports every operator set it knows.
    used = {node.domain for node in new.graph.node} | {""}
    imports = [one for one in new.opset_import if one.domain in used]
    del new.opset_import[:]
    new.opset_import.extend(imports)
    return finished(new, form, facts)
