"""Smaller files of a verified model: int8 by static quantisation, and float16."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from edgefl.core.errors import root, told
from edgefl.export.graph import ExportError, check, describe
from edgefl.export.model import Form

_BATCH = 64

# Products, and what stands between them: a chain of these runs in integers. Preprocessing, normalisation of
# features and probabilities are not among them and stay as exact as they were.
_PRODUCTS = ("Conv", "Gemm", "MatMul")
_BETWEEN = (
    *("Add", "Relu", "Clip", "Concat"),
    *("MaxPool", "AveragePool", "GlobalAveragePool"),
    *("Flatten", "Reshape", "Transpose", "Squeeze", "Unsqueeze"),
)
# Sums of squares leave the range of float16 long before their roots do.
_SUMS_OF_SQUARES = ("ReduceL2", "ReduceSumSquare", "InstanceNormalization", "GroupNormalization")


def to_int8(model: bytes, form: Form, images: Tensor, facts: Mapping[str, Any]) -> bytes:
    """The model with int8 weights and activations, in QDQ form: float operators between pairs of
    QuantizeLinear and DequantizeLinear, which runtimes join to integer ones.

    Weights have a scale for every output channel and use 7 of the 8 bits, activations one for each tensor.

    Args:
        model: a float32 model.
        form: what goes in and comes out; it stays so.
        images: training samples as the input takes them; they give the ranges of activations.
        facts: go into the metadata, beside what stands there or in its place.

    Raises:
        ExportError: ONNX Runtime cannot quantise it.
    """  # noqa: D205 - one sentence needs two lines
    import onnx

    with _explained("quantise the model"), tempfile.TemporaryDirectory() as folder:
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
            # Weights of 7 bits: sums of two products of 8 overflow the 16 bits that x86 without VNNI has for
            # them, and every processor comes to the same numbers.
            reduce_range=True,
            activation_type=QuantType.QInt8,
            weight_type=QuantType.QInt8,
        )
        found = onnx.load(made)
    return _finished(found, model, form, facts)


def _before_floats(graph: Any) -> list[str]:
    """The nodes between products and operators that stay in float, such as the normalisation of features.

    They stay in float, too: a rectifier whose integers two float operators read, each through a conversion of
    its own, keeps ONNX Runtime from joining the product before it, which then runs in float on weights that
    it converts in every call.
    """
    readers: dict[str, list[Any]] = defaultdict(list)
    for node in graph.node:
        for name in node.input:
            readers[name].append(node)
    found: list[str] = []
    for node in reversed(graph.node):
        after = [reader for name in node.output for reader in readers[name]]
        if node.op_type in _BETWEEN and after and not any(_integer(reader, found) for reader in after):
            found.append(node.name)
    return found


def _integer(node: Any, excluded: Sequence[str]) -> bool:
    return node.op_type in _PRODUCTS or (node.op_type in _BETWEEN and node.name not in excluded)


class _Reader:
    """Calibration samples as ONNX Runtime asks for them."""

    def __init__(self, form: Form, images: Tensor) -> None:
        self._input, self._chunks = form.input, iter(torch.split(images, _BATCH))

    def get_next(self) -> dict[str, Any] | None:
        """The next batch; None at the end."""
        chunk = next(self._chunks, None)
        return None if chunk is None else {self._input: chunk.numpy()}


def to_fp16(model: bytes, form: Form, facts: Mapping[str, Any]) -> bytes:
    """The model with float16 weights and activations; inputs and outputs keep their types.

    Args:
        model: a float32 model.
        form: what goes in and comes out; it stays so.
        facts: go into the metadata, beside what stands there or in its place.

    Raises:
        ExportError: the model cannot be converted.
    """
    import onnx

    with _explained("convert the model to float16"):
        with _tools():
            from onnxruntime.transformers import float16
        given = onnx.load_from_string(model)
        # The exporter describes weights as it does results, which the converter takes them for then.
        weights = {one.name for one in given.graph.initializer}
        results = [one for one in given.graph.value_info if one.name not in weights]
        del given.graph.value_info[:]
        given.graph.value_info.extend(results)
        found = float16.convert_float_to_float16(
            given,
            keep_io_types=True,
            op_block_list=[*float16.DEFAULT_OP_BLOCK_LIST, *_SUMS_OF_SQUARES],
        )
        _sort(found.graph)
    return _finished(found, model, form, facts)


@contextmanager
def _tools() -> Iterator[None]:
    """Lets ONNX Runtime's tools be imported, some of which find each other by ``sys.path`` alone.

    Their package puts its folder there when it is first imported, for good: users' modules of the same names
    would be hidden. Here it stands there for as long as the imports take, whichever of them come first.
    """
    before = list(sys.path)
    import onnxruntime.transformers

    sys.path[:] = [*before, *onnxruntime.transformers.__path__]
    try:
        yield
    finally:
        sys.path[:] = before


def _sort(graph: Any) -> None:
    """Puts nodes after those whose results they take; the converter appends its casts at the end."""
    known = {"", *(one.name for one in graph.input), *(one.name for one in graph.initializer)}
    waiting, found = list(graph.node), []
    while waiting:
        later = []
        for node in waiting:
            if known.issuperset(node.input):
                found.append(node)
                known.update(node.output)
            else:
                later.append(node)
        if later and len(later) == len(waiting):
            raise ValueError(f"nothing computes the inputs of {later[0].name}")
        waiting = later
    del graph.node[:]
    graph.node.extend(found)


def _finished(found: Any, model: bytes, form: Form, facts: Mapping[str, Any]) -> bytes:
    """The new model with the old one's metadata, checked as that one was."""
    import onnx

    old = onnx.load_from_string(model)
    del found.metadata_props[:]
    found.metadata_props.extend(old.metadata_props)
    describe(found, facts)
    # ONNX Runtime's optimizer imports every operator set that it knows.
    used = {node.domain for node in found.graph.node} | {""}
    imports = [one for one in found.opset_import if one.domain in used]
    del found.opset_import[:]
    found.opset_import.extend(imports)
    check(found, form)
    made: bytes = found.SerializeToString()
    return made


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turns whatever a library raises into an error that says what could not be done."""
    try:
        with warnings.catch_warnings():
            # The libraries warn of their own internals, which a user can do nothing about.
            warnings.simplefilter("ignore")
            yield
    except (ExportError, MemoryError):
        raise
    except Exception as error:
        raise ExportError(f"ONNX Runtime cannot {what}: {told(root(error))}") from error
