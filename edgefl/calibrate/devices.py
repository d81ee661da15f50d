"""Device files of both kinds from timings, and how the device compares with what was measured."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgefl.calibrate import record, workloads
from edgefl.calibrate.fit import STEP_WEIGHT, Observation, fit
from edgefl.calibrate.machine import Machine
from edgefl.calibrate.measure import Session, Timing, TimingPlan, runtime
from edgefl.calibrate.workloads import COPY, FIT, HELD_OUT, TrainingStep
from edgefl.core.devices import KINDS, Board
from edgefl.core.devices.measured import fingerprint
from edgefl.core.yamls import Document, dump, plain, validate
from edgefl.report.calibration import Prediction

_BUSY = 0.9


@dataclass(frozen=True)
class DeviceFile:
    """A device file's content, beside what was measured.

    Attributes:
        data: the file's content.
        steps: each network and batch size in training.
        inference: likewise in inference.
        notes: what a reader of the numbers should know.
    """

    data: dict[str, Any]
    steps: list[Prediction]
    inference: list[Prediction] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def roofline_device(name: str, session: Session, machine: Machine) -> DeviceFile:
    """Fits a roofline to kernels, training steps and inference.

    Raises:
        RunError: a measuring process failed.
    """
    kernels, steps, effort, how = workloads.kernels(), workloads.steps(), session.effort, session.how
    plans = [
        TimingPlan(kernels, effort.kernel_s),
        *(TimingPlan(one, effort.step_s / len(one)) for one in steps),
    ]
    infers = effort.inference_s > 0
    session.expect(effort.repeats * (len(plans) + infers) + infers)
    timings, loaded_bytes = session.timed(plans)
    inferred = _inferred(session) if infers else []
    copy, others = _split(timings)
    bandwidth, bandwidth_entry = record.bandwidth(copy, how)
    fitted = fit(_observations(others), bandwidth)
    peak, peak_entry = record.peak([*timings, *inferred], fitted, how)
    data = {
        "title": machine.title,
        "category": machine.category,
        "kind": "roofline",
        "peak": {"fp32": peak_entry},
        **record.efficiencies(fitted, peak, how.of("torch")),
        "memory_bandwidth": bandwidth_entry,
    }
    if infers:
        package = "onnxruntime"
        fitted = fit(_observations(inferred), bandwidth, most_dense=peak)
        data["inference"] = {
            "runtime": runtime(package),
            **record.efficiencies(fitted, peak, how.of(package)),
        }
    trained = [one for one in timings if isinstance(one.workload.computation, TrainingStep)]
    data |= record.board(machine, loaded_bytes, trained, how)
    device = _validated(name, data)
    return DeviceFile(
        data,
        _predicted(trained, device, inference=False),
        _predicted(inferred, device, inference=True),
        _notes([*timings, *inferred], machine),
    )


def _inferred(session: Session) -> list[Timing]:
    """ONNX Runtime's timings."""
    with tempfile.TemporaryDirectory() as folder:
        inferences = workloads.inferences(Path(folder))
        session.export(inferences)
        return session.timed([TimingPlan(inferences, session.effort.inference_s)])[0]


def _predicted(timings: Sequence[Timing], device: Board, *, inference: bool) -> list[Prediction]:
    """Each network as the device predicts it."""
    clock = device.clock(device.title, "fp32", inference=inference)
    return [_compared(one, clock.time(one.work).seconds, one.workload.use) for one in timings]


def measured_device(name: str, session: Session, machine: Machine) -> DeviceFile:
    """Takes the step times of every network at every batch size.

    Bandwidth and launch overhead, for work without products, come from the fit of a roofline.

    Raises:
        RunError: a measuring process failed.
    """
    effort, how = session.effort, session.how
    kernels, curves = workloads.kernels(), workloads.steps(effort.batches)
    session.expect(effort.repeats * (1 + len(curves)))
    step_s = effort.step_s / len(effort.batches)
    plans = [TimingPlan(kernels, effort.kernel_s), *(TimingPlan(one, step_s) for one in curves)]
    timings, loaded_bytes = session.timed(plans)
    steps = timings[len(kernels) :]
    copy, others = _split(timings)
    bandwidth, bandwidth_entry = record.bandwidth(copy, how)
    data = {
        "title": machine.title,
        "category": machine.category,
        "kind": "measured",
        "runtime": f"{runtime('torch')}, {how.in_threads}",
        "networks": _networks(steps, session),
        "memory_bandwidth": bandwidth_entry,
        "launch_overhead": record.launch(fit(_observations(others), bandwidth), how),
        **record.board(machine, loaded_bytes, steps, how),
    }
    _validated(name, data)
    return DeviceFile(data, _interpolated(steps), notes=_notes(timings, machine))


def _networks(steps: Sequence[Timing], session: Session) -> dict[str, Any]:
    """The curves, by the fingerprint of their networks' steps."""
    found: dict[str, Any] = {}
    for one in steps:
        if isinstance(one.workload.computation, TrainingStep):
            network = one.workload.computation.network
            shape = "x".join(map(str, network.shape))
            title = f"{network.model} on {shape}, fedavg with SGD"
            curve = found.setdefault(fingerprint(one.work), {"network": title, "points": []})
            entry = record.step(one, session.how)
            curve["points"].append({"batch": one.workload.batch, "flops": one.work.flops, "seconds": entry})
    return found


def _interpolated(steps: Sequence[Timing]) -> list[Prediction]:
    """Each point as its two neighbours alone would predict it; the ends of curves without a prediction."""
    found = []
    for before, one, after in zip((None, *steps), steps, (*steps[1:], None), strict=False):
        if before is None or after is None or before.workload.computation != after.workload.computation:
            found.append(_compared(one, None, FIT))
            continue
        low, high = before.workload.batch, after.workload.batch
        share = (one.workload.batch - low) / (high - low)
        found.append(_compared(one, before.seconds * (1 - share) + after.seconds * share, HELD_OUT))
    return found


def _split(timings: Sequence[Timing]) -> tuple[Timing, list[Timing]]:
    """The copy, whose rate is the bandwidth, and what is left for the fit to explain."""
    (copy,) = (one for one in timings if one.workload == COPY)
    return copy, [one for one in timings if one is not copy]


def _observations(timings: Sequence[Timing]) -> list[Observation]:
    """What the fit may use."""
    return [
        Observation(
            one.work, one.seconds, STEP_WEIGHT if isinstance(one.workload.computation, TrainingStep) else 1.0
        )
        for one in timings
        if one.workload.use == FIT
    ]


def _compared(timing: Timing, predicted_s: float | None, use: str) -> Prediction:
    return Prediction(timing.workload.title, use, timing.seconds, timing.spread, predicted_s)


def _validated(name: str, data: Mapping[str, Any]) -> Board:
    """The device as it will be read back from its file.

    Raises:
        UserError: the file would not be valid.
    """
    document = Document.parse(dump(dict(data)), name)
    return validate(KINDS[data["kind"]], plain(document.data), document)


def _notes(timings: Sequence[Timing], machine: Machine) -> list[str]:
    """What a reader of the numbers should know."""
    notes = []
    least = min(one.share for one in timings)
    if least < _BUSY:
        notes.append(
            f"the machine was busy: at worst a measuring process had {least:.0%} of a core. Times on one "
            "thread are CPU time, which excludes other programs, but caches and memory were shared"
        )
    if machine.why_no_power:
        notes.append(f"power is unknown: {machine.why_no_power}")
    return notes
