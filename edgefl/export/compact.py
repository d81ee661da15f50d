"""The third stage: a smaller file, what it costs in accuracy and what it saves."""

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgefl.core import draws
from edgefl.core.units import show_share
from edgefl.export.build import FP16, FP32, INT8, Candidate
from edgefl.export.build import images as images_of
from edgefl.export.graph import ExportError, explained, finished
from edgefl.export.model import ExportForm
from edgefl.export.trained import TrainedVersion
from edgefl.export.verify import compare, odd_batches, runner
from edgefl.show.onnx import Compact

# Ranges of activations settle after some hundred images; more only cost time.
CALIBRATION_IMAGES = 512
_WARM_UP, _RUNS, _MOST_S = 20, 300, 20.0
# Rounding of a share of samples is not a loss.
_ROUNDING = 1e-9


def compact(candidate: Candidate) -> tuple[bytes, Compact | None]:
    """The model in the precision asked for, and how it compares with the float32 one if it is another.

    Raises:
        ExportError: the smaller model cannot be made, does not run, or loses too much accuracy.
    """
    form, precision, fp32 = candidate.form, candidate.options.precision, candidate.fp32
    if precision == FP32:
        return fp32, None
    calibrated_on = None
    if precision == INT8:
        images = calibration_images(candidate.source, candidate.client, form)
        calibrated_on = len(images)
        facts = {"precision": INT8, "calibration": f"{calibrated_on} training images"}
        model = to_int8(fp32, form, images, facts)
    else:
        model = to_fp16(fp32, form, {"precision": FP16})
    comparison = compare_with_fp32(
        model, fp32, form, *candidate.test, max_drop=candidate.options.max_drop, calibrated_on=calibrated_on
    )
    return model, comparison


def calibration_images(source: TrainedVersion, client: int | None, form: ExportForm) -> Tensor:
    """Training images that give the ranges of activations: at most 512, drawn by the run's seed.

    A client's model is calibrated on its own images alone, the global model (None) on those of all clients.
    """
    parts = source.federation.parts
    indices = np.concatenate(parts) if client is None else parts[client]
    if len(indices) > CALIBRATION_IMAGES:
        rng = draws.generator(source.meta["seed"], "calibration", client=-1 if client is None else client)
        indices = rng.choice(indices, CALIBRATION_IMAGES, replace=False)
    return images_of(source, np.sort(indices), "train", form)


def compare_with_fp32(
    model: bytes,
    fp32: bytes,
    form: ExportForm,
    images: Tensor,
    labels: Tensor,
    *,
    max_drop: float,
    calibrated_on: int | None = None,
) -> Compact:
    """Compares a smaller ONNX model with the float32 one.

    Args:
        images: test samples as the input takes them, at least one.
        max_drop: the accuracy that may be lost.
        calibrated_on: number of calibration images, for the result.

    Raises:
        ExportError: the smaller model does not run, or loses too much accuracy.
    """
    run = runner(model, form)
    for batch in odd_batches(images):
        logits = run(batch)
        if len(logits) != len(batch) or not np.isfinite(logits).all():
            raise ExportError(
                f"a batch of {len(batch)} gives {len(logits)} rows of logits, or some are not finite"
            )
    # Errors of logits do not matter here: they are the price of the smaller size.
    comparison = compare(run, runner(fp32, form), images, labels)
    drop = comparison.torch_accuracy - comparison.accuracy
    if drop > max_drop + _ROUNDING:
        raise ExportError(
            f"accuracy falls by {show_share(drop, 2)}, from {comparison.torch_accuracy:.2%} to "
            f"{comparison.accuracy:.2%} on {comparison.samples:,} test samples; "
            f"the limit is {show_share(max_drop, 2)}",
            hint="its files were not written; --max-drop raises the limit",
        )
    latency, fp32_latency = latencies_ms([model, fp32], form, images[:1])
    return Compact(
        samples=comparison.samples,
        accuracy=comparison.accuracy,
        fp32_accuracy=comparison.torch_accuracy,
        agreement=comparison.agreement,
        fp32_bytes=len(fp32),
        latency_ms=latency,
        fp32_latency_ms=fp32_latency,
        calibrated_on=calibrated_on,
        drop=drop,
    )


def latencies_ms(models: Sequence[bytes], form: ExportForm, image: Tensor) -> list[float]:
    """The models' median times for one image on one thread, in milliseconds.

    They take turns, so that whatever else the machine does slows all of them.
    """
    runs = [runner(model, form) for model in models]
    times: list[list[float]] = [[] for _ in models]
    for _ in range(_WARM_UP):
        for run in runs:
            run(image)
    end = time.perf_counter() + _MOST_S
    while len(times[0]) < _RUNS and time.perf_counter() < end:
        for run, own in zip(runs, times, strict=True):
            start = time.perf_counter()
            run(image)
            own.append(time.perf_counter() - start)
    return [1000 * float(np.median(own)) for own in times]


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
