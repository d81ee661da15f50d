"""PyTorch against ONNX Runtime on real samples: the gate that every export passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edgefl.compute.threads import one_thread
from edgefl.export.graph import LOGITS, Form, Served
from edgefl.export.running import session

BATCHES = (1, 2, 7, 64)
_CHUNK = 256
# A shallow net's sums are short; a deep one's roundings add up layer by layer.
_SHALLOW, _DEEP = (1e-4, 1e-5), (1e-3, 1e-4)
_DEEP_FROM = 10

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Run = Callable[[Tensor], Floats]


@dataclass(frozen=True)
class Parity:
    """How an exported model compares with the one it was made of.

    Attributes:
        samples: test samples compared.
        max_error: of logits, over all samples and the batch sizes 1, 2, 7 and 64.
        within: whether all errors are within the tolerances.
        rtol, atol: the tolerances.
        agreement: the share of samples with the same largest logit.
        accuracy: the exported model's.
        torch_accuracy: PyTorch's.
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
        """Whether the exported model is the same model."""
        return self.within and self.agreement == 1.0

    def __str__(self) -> str:
        return (
            f"max error {self.max_error:.2g}, "
            f"top-1 agreement {self.agreement:.2%} on {self.samples:,} samples, "
            f"accuracy {self.accuracy:.2%} against PyTorch's {self.torch_accuracy:.2%}"
        )


def runner(model: bytes, form: Form) -> Run:
    """Images -> logits (B, classes), by ONNX Runtime."""
    running = session(model)

    def run(images: Tensor) -> Floats:
        found: Floats = running.run([LOGITS], {form.input: images.numpy()})[0]
        return found

    return run


def parity(model: bytes, served: Served, form: Form, images: Tensor, labels: Tensor, *, depth: int) -> Parity:
    """Compares an exported model with the module.

    Args:
        model: the export.
        served: what it was made of.
        form: what goes in.
        images: test samples as the input takes them, at least one.
        labels: theirs.
        depth: how many convolutions and matrix products the model has.
    """
    rtol, atol = _DEEP if depth > _DEEP_FROM else _SHALLOW
    theirs, ours = runner(model, form), _module(served)
    return compared(ours, theirs, images, labels, rtol=rtol, atol=atol)


def compared(ours: Run, theirs: Run, images: Tensor, labels: Tensor, *, rtol: float, atol: float) -> Parity:
    """Compares two ways to compute logits; ``theirs`` is the one to judge.

    Args:
        ours: images -> logits, what is right.
        theirs: the same.
        images: test samples, at least one.
        labels: theirs.
        rtol: how much of a right logit an error may be.
        atol: and how much beside.
    """
    # The odd batches show what a fixed batch axis would break, the large ones cover every sample. A client
    # may have fewer samples than the largest batch: they come again.
    chunks = [images[torch.arange(size) % len(images)] for size in BATCHES]
    errors = [_Error.between(ours(chunk), theirs(chunk), rtol, atol) for chunk in chunks]
    logits = [(ours(chunk), theirs(chunk)) for chunk in torch.split(images, _CHUNK)]
    errors += [_Error.between(one, other, rtol, atol) for one, other in logits]
    expected, found = (np.concatenate(side).argmax(axis=1) for side in zip(*logits, strict=True))
    wanted = labels.numpy()
    return Parity(
        samples=len(images),
        max_error=max(one.most for one in errors),
        within=all(one.within for one in errors),
        rtol=rtol,
        atol=atol,
        agreement=float((expected == found).mean()),
        accuracy=float((found == wanted).mean()),
        torch_accuracy=float((expected == wanted).mean()),
    )


@dataclass(frozen=True)
class _Error:
    most: float
    within: bool

    @classmethod
    def between(cls, expected: Floats, found: Floats, rtol: float, atol: float) -> _Error:
        gap = np.abs(expected - found)
        most = float(gap.max()) if np.isfinite(gap).all() else float("inf")
        return cls(most, bool((gap <= atol + rtol * np.abs(expected)).all()))


def _module(served: Served) -> Run:
    def run(images: Tensor) -> Floats:
        with torch.inference_mode(), one_thread():
            found = served(images)
        logits: Tensor = found[0] if isinstance(found, tuple) else found
        return logits.numpy()

    return run
