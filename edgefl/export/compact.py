"""What a smaller file of a model costs in accuracy, and what it saves."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from edgefl.export.graph import ExportError, Form
from edgefl.export.verify import BATCHES, Run, compared, runner

_WARM_UP, _RUNS, _MOST_S = 20, 300, 20.0
# Rounding of a share of samples is no loss.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Compact:
    """How a smaller model compares with the float32 one, both in ONNX Runtime.

    Attributes:
        samples: test samples compared.
        accuracy: the smaller model's.
        fp32_accuracy: the float32 one's.
        agreement: the share of samples with the same largest logit.
        fp32_bytes: the float32 model's size.
        latency_ms: of one image on one thread of this machine, the median.
        fp32_latency_ms: the float32 model's, measured in turn with it.
        calibrated_on: training samples that gave the ranges of activations; None where none were needed.
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
        """How much accuracy was lost; below 0 where some was won."""
        return self.fp32_accuracy - self.accuracy


def compact(
    model: bytes,
    fp32: bytes,
    form: Form,
    images: Tensor,
    labels: Tensor,
    *,
    most: float,
    calibrated_on: int | None = None,
) -> Compact:
    """Compares a smaller model with the float32 one.

    Args:
        model: the smaller one.
        fp32: the other.
        form: what goes in.
        images: test samples as the input takes them, at least one.
        labels: theirs.
        most: how much accuracy may be lost.
        calibrated_on: for the result.

    Raises:
        ExportError: the smaller model does not run, or loses more.
    """
    run = runner(model, form)
    _check_batches(run, images)
    # Errors of logits are no measure here: they are what the size is bought with.
    found = compared(runner(fp32, form), run, images, labels, rtol=0, atol=0)
    drop = found.torch_accuracy - found.accuracy
    if drop > most + _ROUNDING:
        raise ExportError(
            f"accuracy falls by {drop:.2%}, from {found.torch_accuracy:.2%} to {found.accuracy:.2%} "
            f"on {found.samples:,} test samples; at most {most:.2%} may be lost",
            hint="no file of it was written; --max-drop allows more",
        )
    latency, fp32_latency = latencies_ms([model, fp32], form, images[:1])
    return Compact(
        samples=found.samples,
        accuracy=found.accuracy,
        fp32_accuracy=found.torch_accuracy,
        agreement=found.agreement,
        fp32_bytes=len(fp32),
        latency_ms=latency,
        fp32_latency_ms=fp32_latency,
        calibrated_on=calibrated_on,
    )


def _check_batches(run: Run, images: Tensor) -> None:
    for size in BATCHES:
        logits = run(images[torch.arange(size) % len(images)])
        if len(logits) != size or not np.isfinite(logits).all():
            raise ExportError(f"a batch of {size} gives {len(logits)} rows of logits, or some are not finite")


def latencies_ms(models: Sequence[bytes], form: Form, image: Tensor) -> list[float]:
    """The models' median times for one image on one thread, in milliseconds.

    They take turns, so that whatever else the machine does slows all of them.
    """
    running = [runner(model, form) for model in models]
    found: list[list[float]] = [[] for _ in models]
    for _ in range(_WARM_UP):
        for run in running:
            run(image)
    end = time.perf_counter() + _MOST_S
    while len(found[0]) < _RUNS and time.perf_counter() < end:
        for run, times in zip(running, found, strict=True):
            start = time.perf_counter()
            run(image)
            times.append(time.perf_counter() - start)
    return [1000 * float(np.median(times)) for times in found]
