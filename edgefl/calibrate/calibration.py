"""A calibration from start to end: check the name and place of the file, measure, and write it."""

from __future__ import annotations

import re
import shlex
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from edgefl.calibrate import record, workloads
from edgefl.calibrate.fit import STEP_WEIGHT, Observation, fit
from edgefl.calibrate.machine import Machine, this_machine
from edgefl.calibrate.measure import FULL, Effort, Progress, Session, Timing, TimingPlan, runtime
from edgefl.calibrate.workloads import COPY, FIT, HELD_OUT, TrainingStep
from edgefl.core import catalogue
from edgefl.core.devices import KINDS, Board
from edgefl.core.devices.measured import fingerprint
from edgefl.core.errors import UserError
from edgefl.core.files import atomically
from edgefl.core.fresh import Caller, call
from edgefl.core.host import check_threads
from edgefl.core.nodes import short
from edgefl.core.validation import validate
from edgefl.core.yamls import Document, dump
from edgefl.report.calibration import Prediction

_BUSY = 0.9


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A calibrated device.

    Attributes:
        device: its name.
        file: its file; empty before it is written.
        kind: "roofline" or "measured".
        next: the command after this one: to price the device or, if its file is not found by name yet, to
            have it found.
        numbers: the file's content.
        steps: each network and batch size in training: what was measured, and what the file predicts.
        inference: likewise in inference.
        notes: what a reader of the numbers should know.
        took_s: seconds.
    """

    device: str
    file: str = ""
    kind: str
    next: str = ""
    numbers: dict[str, Any]
    steps: list[Prediction]
    inference: list[Prediction] = field(default_factory=list)
    notes: list[str]
    took_s: float = 0.0


def roofline_device(name: str, session: Session, machine: Machine) -> Calibration:
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
    return Calibration(
        device=name,
        kind="roofline",
        numbers=data,
        steps=_predicted(trained, device, inference=False),
        inference=_predicted(inferred, device, inference=True),
        notes=_notes([*timings, *inferred], machine),
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


def measured_device(name: str, session: Session, machine: Machine) -> Calibration:
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
        "launch_overhead": record.launch(fit(_observations(others), bandwidth), how.of("torch")),
        **record.board(machine, loaded_bytes, steps, how),
    }
    _validated(name, data)
    return Calibration(
        device=name,
        kind="measured",
        numbers=data,
        steps=_interpolated(steps),
        notes=_notes(timings, machine),
    )


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
    return validate(KINDS[data["kind"]], document.data, document)


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


_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


def calibrate(
    name: str,
    *,
    out: Path | None = None,
    force: bool = False,
    threads: int = 1,
    curves: bool = False,
    effort: Effort = FULL,
    run: Caller = call,
    progress: Progress = lambda label, done, total: None,  # noqa: ARG005 - a name for each
) -> Calibration:
    """Measures this machine and writes a device file.

    Args:
        name: the device's.
        out: the file; ``devices/NAME.yaml`` in the first folder of EDGEFL_PATH, or here, by default.
        force: overwrite the file if it exists.
        threads: for training and inference.
        curves: write a file of kind "measured", with step times of networks, in place of a roofline.
        effort: how long to measure.
        run: calls a function in a fresh process.
        progress: is called with what comes next, how many processes are done, and of how many.

    Raises:
        UserError: the name or the file cannot be used, or there are fewer cores than threads.
        RunError: a measuring process failed, or the file cannot be written.
    """
    check_threads(threads)
    path, start = _target(name, out, force=force), time.perf_counter()
    make = measured_device if curves else roofline_device
    made = make(name, Session(effort, threads, run, progress), this_machine())
    path.parent.mkdir(parents=True, exist_ok=True)
    atomically(path, dump(made.numbers).encode())
    return replace(made, file=str(path), next=next_step(path), took_s=time.perf_counter() - start)


def _target(name: str, out: Path | None, *, force: bool) -> Path:
    """The file to write.

    Raises:
        UserError: the name is invalid or taken, the file exists and ``force`` is not given, or it cannot be
            written.
    """
    path = out or next(iter(catalogue.user_folders()), Path()) / "devices" / f"{name}.yaml"
    if path.is_dir():
        raise UserError(f"{path} is a folder", where="--out", hint=f"try --out {path / name}.yaml")
    if path.suffix != ".yaml":
        raise UserError(f"{path.name} is not a .yaml file", where="--out", hint=f"try --out {name}.yaml")
    # A device has its file's name.
    for where, text in {"NAME": name, "--out": path.stem}.items():
        _check_name(text, where, path)
    if path.exists() and not force:
        raise UserError(
            f"{path.name} already exists",
            where=str(path),
            hint="choose another name, or overwrite it with --force",
        )
    if out and not path.parent.exists():
        raise UserError(f"{path.parent} does not exist", where="--out", hint=f"mkdir -p {path.parent}")
    _check_writable(path, "--out" if out else str(path.parent))
    return path


def _check_name(name: str, where: str, path: Path) -> None:
    """Checks that a device in this file can have the name.

    Raises:
        UserError: the name is invalid or another device's.
    """
    if not _NAME.fullmatch(name):
        raise UserError(
            f"invalid device name {short(name)!r}",
            where=where,
            hint="use up to 100 lower-case letters, digits, '-', '_' and '.', such as my-laptop",
        )
    known = catalogue.entries("devices").get(name)
    if known is not None and known.path.resolve() != path.resolve():
        raise UserError(
            f"the name {name!r} belongs to another device", where=str(known.path), hint="choose another name"
        )


def _check_writable(path: Path, where: str) -> None:
    """Checks before the measurements, which take minutes, that the file can be written.

    Raises:
        UserError: the file, or the nearest folder that exists, cannot be written to.
    """
    folder = next(one for one in path.absolute().parents if one.exists())
    try:
        # Permissions do not tell about read-only and special file systems, so a file is really written.
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise UserError(
            f"cannot write in {folder}: {error.strerror}", where=where, hint="choose another --out"
        ) from error


def next_step(path: Path) -> str:
    """The command after a device file was written: to price it, or to have it found first."""
    device, file = path.stem, path.resolve()
    known = catalogue.entries("devices").get(device)
    if known is not None and known.path.resolve() == file:
        return f"edgefl profile quickstart --device {device}"
    if file.parent.name != "devices":
        return f"move it to DIR/devices/, and {_export('DIR')}"
    return _export(shlex.quote(str(file.parent.parent)))


def _export(folder: str) -> str:
    return f"export EDGEFL_PATH={folder}${{EDGEFL_PATH:+:$EDGEFL_PATH}}"
