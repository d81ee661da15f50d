"""The third stage: a smaller file, what it costs in accuracy and what it saves."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from torch import Tensor

from edgefl.core import seeds
from edgefl.core.units import show_share
from edgefl.export.build import FP16, FP32, INT8, Candidate
from edgefl.export.build import images as images_of
from edgefl.export.graph import ExportError
from edgefl.export.model import ExportForm
from edgefl.export.quantise import to_fp16, to_int8
from edgefl.export.trained import TrainedVersion
from edgefl.export.verify import Run, compare, odd_batches, runner
from edgefl.show.onnx import Compact

# Ranges of activations settle after some hundred images; more only cost time.
CALIBRATION_IMAGES = 512
_WARM_UP, _RUNS, _MOST_S = 20, 300, 20.0
# Rounding of a share of samples is not a loss.
_ROUNDING = 1e-9


def compact(candidate: Candidate) -> Candidate:
    """Converts the model to the precision asked for; a float32 model passes unchanged.

    Raises:
        ExportError: the smaller model cannot be made, does not run, or loses too much accuracy.
    """
    form, precision, fp32 = candidate.form, candidate.options.precision, candidate.fp32
    if precision == FP32:
        return candidate
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
    return replace(candidate, model=model, compact=comparison)


def calibration_images(source: TrainedVersion, client: int | None, form: ExportForm) -> Tensor:
    """Training images that give the ranges of activations: at most 512, drawn by the run's seed.

    A client's model is calibrated on its own images alone, the global model (None) on those of all clients.
    """
    parts = source.federation.parts
    indices = np.concatenate(parts) if client is None else parts[client]
    if len(indices) > CALIBRATION_IMAGES:
        rng = seeds.generator(source.meta["seed"], "calibration", client=-1 if client is None else client)
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
    _check_batches(run, images)
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


def _check_batches(run: Run, images: Tensor) -> None:
    for batch in odd_batches(images):
        logits = run(batch)
        if len(logits) != len(batch) or not np.isfinite(logits).all():
            raise ExportError(
                f"a batch of {len(batch)} gives {len(logits)} rows of logits, or some are not finite"
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
