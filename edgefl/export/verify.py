"""The second stage: PyTorch against ONNX Runtime on real samples, the gate that every export passes."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edgefl.compute.onnx_runtime import session
from edgefl.compute.process import one_thread
from edgefl.export.build import Candidate
from edgefl.export.graph import ExportError, Served
from edgefl.export.model import LOGITS, ExportForm
from edgefl.show.onnx import Parity

BATCHES = (1, 2, 7, 64)
_CHUNK = 256
# A shallow net's sums are short; a deep one's roundings add up layer by layer.
_SHALLOW, _DEEP = (1e-4, 1e-5), (1e-3, 1e-4)
_DEEP_FROM = 10

Floats = NDArray[np.float32]
Run = Callable[[Tensor], Floats]


def verify(candidate: Candidate) -> Parity:
    """Compares the float32 ONNX model with PyTorch.

    Raises:
        ExportError: they do not compute the same.
    """
    result = parity(candidate.fp32, candidate.served, candidate.form, *candidate.test)
    if not result.passed:
        raise ExportError(
            "the model computes something else in ONNX Runtime than in PyTorch: "
            f"max error {result.max_error:.2g}, "
            f"top-1 agreement {result.agreement:.2%} on {result.samples:,} samples, "
            f"accuracy {result.accuracy:.2%} against PyTorch's {result.torch_accuracy:.2%}",
            hint="its files were not written; "
            f"tolerances: {result.rtol:g} relative, {result.atol:g} absolute",
        )
    return result


def parity(model: bytes, served: Served, form: ExportForm, images: Tensor, labels: Tensor) -> Parity:
    """Compares an ONNX model with the PyTorch module it was made from.

    The images are test samples as the input takes them, at least one.
    """
    rtol, atol = _DEEP if _depth(model) > _DEEP_FROM else _SHALLOW

    def in_torch(batch: Tensor) -> Floats:
        with torch.inference_mode(), one_thread():
            outputs = served(batch)
        logits: Tensor = outputs[0] if isinstance(outputs, tuple) else outputs
        return logits.numpy()

    return compare(runner(model, form), in_torch, images, labels, rtol=rtol, atol=atol)


def _depth(model: bytes) -> int:
    """How many convolutions and matrix products a model has, an upper bound of its depth."""
    import onnx

    graph = onnx.load_from_string(model).graph
    return sum(node.op_type in {"Conv", "Gemm", "MatMul"} for node in graph.node)


def runner(model: bytes, form: ExportForm) -> Run:
    """Images -> logits (B, classes), by ONNX Runtime."""
    running = session(model)

    def run(images: Tensor) -> Floats:
        logits: Floats = running.run([LOGITS], {form.input: images.numpy()})[0]
        return logits

    return run


def compare(
    run: Run, reference: Run, images: Tensor, labels: Tensor, *, rtol: float = 0, atol: float = 0
) -> Parity:
    """Compares two ways to compute logits.

    Args:
        run: images -> logits, the way to judge.
        reference: images -> logits, the way that is right.
        images: test samples, at least one.
        rtol: tolerated error of a logit, relative to the right one.
        atol: tolerated error beside that.
    """
    # The odd batches show what a fixed batch axis would break, the large ones cover every sample.
    chunks = [*odd_batches(images), *torch.split(images, _CHUNK)]
    pairs = [(reference(chunk), run(chunk)) for chunk in chunks]
    expected, actual = map(np.concatenate, zip(*pairs, strict=True))
    errors = np.abs(expected - actual)
    expected_classes, classes = (side[-len(images) :].argmax(axis=1) for side in (expected, actual))
    within = bool((errors <= atol + rtol * np.abs(expected)).all())
    agreement = float((expected_classes == classes).mean())
    return Parity(
        samples=len(images),
        max_error=float(errors.max()) if np.isfinite(errors).all() else float("inf"),
        within=within,
        rtol=rtol,
        atol=atol,
        agreement=agreement,
        accuracy=float((classes == labels.numpy()).mean()),
        torch_accuracy=float((expected_classes == labels.numpy()).mean()),
        passed=within and agreement == 1.0,
    )


def odd_batches(images: Tensor) -> list[Tensor]:
    """Batches of the sizes 1, 2, 7 and 64; images repeat where there are fewer."""
    return [images[torch.arange(size) % len(images)] for size in BATCHES]
