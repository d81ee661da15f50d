"""A calibration from start to end: check the name and place of the file, measure, and write it."""

import shlex
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from edgefl.calibrate import record, suites
from edgefl.calibrate.fit import STEP_WEIGHT, TimedWork, fit
from edgefl.calibrate.measure import FULL, Effort, Session, Timing, TimingPlan, runtime
from edgefl.calibrate.power import Meter, Powers
from edgefl.calibrate.record import Machine, this_machine
from edgefl.calibrate.suites import COPY
from edgefl.calibrate.workloads import FIT, ForwardPass, MethodStep
from edgefl.core import catalogue
from edgefl.core.devices import Board
from edgefl.core.devices.roofline import Roofline
from edgefl.core.errors import UserError
from edgefl.core.files import atomically, check_free, check_out
from edgefl.core.fresh import call
from edgefl.core.host import check_threads
from edgefl.core.validation import validate
from edgefl.core.yamls import Document, dump
from edgefl.planning.starting import check_name
from edgefl.show.answers import Steps, quiet
from edgefl.show.validation import MethodPrediction, Prediction

_BUSY = 0.9


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A calibrated device.

    Attributes:
        file: its file; empty before it is written.
        next: the command after this one: to price the device or, if its file is not found by name yet, to
            have it found.
        numbers: the file's content.
        steps, inference: each network and batch size: what was measured, and what the file predicts.
        methods: steps of several methods, over FedAvg's on the same network: measured, and predicted.
        notes: what a reader of the numbers should know.
    """

    device: str
    file: str = ""
    next: str = ""
    numbers: dict[str, Any]
    steps: list[Prediction]
    inference: list[Prediction] = field(default_factory=list)
    methods: list[MethodPrediction] = field(default_factory=list)
    notes: list[str]
    took_s: float = 0.0


def _device(name: str, session: Session, machine: Machine, meter: Meter) -> Calibration:
    """Fits a roofline to kernels, training steps, forward passes and inference.

    Raises:
        RunError: a measuring process failed.
        UserError: the file would not be valid.
    """
    effort, how, methods = session.effort, session.how, suites.methods()
    # A process for each group, whose workloads share a network's seconds.
    groups = [*suites.steps(), suites.overheads(), methods]
    plans = [
        TimingPlan(suites.kernels(), effort.kernel_s),
        *(TimingPlan(group, effort.step_s / len(group)) for group in groups),
    ]
    infers = effort.inference_s > 0
    session.expect(effort.repeats * (len(plans) + infers) + infers)
    timings, loaded_bytes = session.timed(plans)
    inferred = _inferred(session) if infers else []
    # The copy's rate is the bandwidth; the fit explains what is left.
    (copy,) = (one for one in timings if one.workload == COPY)
    bandwidth, bandwidth_entry = record.bandwidth(copy, how)
    fitted = fit(_observations([one for one in timings if one is not copy]), bandwidth)
    peak, peak_entry = record.peak([*timings, *inferred], fitted, how)
    data = {
        "title": machine.title,
        "category": machine.category,
        "kind": "roofline",
        "peak": {"fp32": peak_entry},
        **record.efficiencies(fitted, peak, how.of("torch")),
        "backward_overhead": record.backward(fitted, how.of("torch")),
        "memory_bandwidth": bandwidth_entry,
    }
    if infers:
        package = "onnxruntime"
        fitted = fit(_observations(inferred), bandwidth, most_dense=peak)
        data["inference"] = {
            "runtime": runtime(package),
            **record.efficiencies(fitted, peak, how.of(package)),
        }
    powers = meter.powers()
    data |= record.board(machine, loaded_bytes, powers, how)
    # As it will be read back from its file.
    document = Document.parse(dump(data), name)
    device = validate(Roofline, document.data, document)
    compared = [one for one in timings if one.workload in methods]
    trained = [one for one in timings if isinstance(one.workload.computation, MethodStep)]
    return Calibration(
        device=name,
        numbers=data,
        steps=_predicted([one for one in trained if one not in compared], device, inference=False),
        inference=_predicted(inferred, device, inference=True),
        methods=_compared_methods(compared, device),
        notes=_notes([*timings, *inferred], powers),
    )


def _inferred(session: Session) -> list[Timing]:
    """ONNX Runtime's timings."""
    with tempfile.TemporaryDirectory() as folder:
        inferences = suites.inferences(Path(folder))
        session.export(inferences)
        return session.timed([TimingPlan(inferences, session.effort.inference_s)])[0]


def _predicted(timings: Sequence[Timing], device: Board, *, inference: bool) -> list[Prediction]:
    """Each network as the device predicts it."""
    clock = device.clock(device.title, "fp32", inference=inference)
    return [
        Prediction(
            one.workload.title, one.workload.use, one.seconds, one.spread, clock.time(one.work).seconds
        )
        for one in timings
    ]


def _compared_methods(timings: Sequence[Timing], device: Board) -> list[MethodPrediction]:
    """Each step as the device predicts it, over FedAvg's, which comes first on each network."""
    clock, found = device.clock(device.title, "fp32"), []
    for one in timings:
        step = one.workload.computation
        if isinstance(step, MethodStep):
            seconds = one.seconds, clock.time(one.work).seconds
            if one.workload.use == FIT:
                base = seconds
            network = f"{step.network.title}, batch {one.workload.batch}"
            found.append(MethodPrediction(network, step.title, *seconds, *base))
    return found


def _observations(timings: Sequence[Timing]) -> list[TimedWork]:
    """What the fit may use."""
    passes = MethodStep, ForwardPass
    return [
        TimedWork(one.work, one.seconds, STEP_WEIGHT if isinstance(one.workload.computation, passes) else 1.0)
        for one in timings
        if one.workload.use == FIT
    ]


def _notes(timings: Sequence[Timing], powers: Powers) -> list[str]:
    notes = [*powers.notes]
    least = min(one.share for one in timings)
    if least < _BUSY:
        notes.append(
            f"the machine was busy: at worst a measuring process had {least:.0%} of a core. Times on one "
            "thread are CPU time, which excludes other programs, but caches and memory were shared"
        )
    if powers.why:
        notes.append(f"power is unknown: {powers.why}")
    return notes


def calibrate(
    name: str,
    *,
    out: Path | None = None,
    force: bool = False,
    threads: int = 1,
    power_log: Path | None = None,
    powers: Powers | None = None,
    effort: Effort = FULL,
    root: Path = Path("/"),
    run: Callable[..., Any] = call,
    progress: Steps = quiet,
) -> Calibration:
    """Measures this machine and writes a device file.

    Args:
        out: the file; ``devices/NAME.yaml`` in the first folder of EDGEFL_PATH, or here, by default.
        power_log: a wattmeter's log, which is read at the end; see ``edgefl.calibrate.power``. By default
            the host's own sensors and counters are read, where it has any.
        powers: as the user read them off a meter, in place of both.
        root: of the file system that has the host's sensors and counters.

    Raises:
        UserError: the name or a file cannot be used, or there are fewer cores than threads.
        RunError: a measuring process failed, or the file cannot be written.
    """
    check_threads(threads)
    path, start = target(name, out, force=force), time.perf_counter()
    meter, session = Meter(power_log, root, powers), Session(effort, threads, run, progress)
    with meter.open():
        machine = this_machine()
        meter.measure(session)
        made = _device(name, session, machine, meter)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomically({path: dump(made.numbers).encode()})
    return replace(made, file=str(path), next=next_step(path), took_s=time.perf_counter() - start)


def target(name: str, out: Path | None, *, force: bool) -> Path:
    """The file to write.

    Raises:
        UserError: the name is invalid or taken, the file exists and ``force`` is not given, or it cannot be
            written.
    """
    path = out or next(iter(catalogue.user_folders()), Path()) / "devices" / f"{name}.yaml"
    if out or path.is_dir():
        check_out(path, f"{name}.yaml", force=force, suffixes=(".yaml",))
    else:
        check_free(path, force=force)
    # A device has its file's name.
    for where, text in {"NAME": name, "--out": path.name.removesuffix(".yaml")}.items():
        check_name("devices", text, path, where)
    folder = next(one for one in path.absolute().parents if one.exists())
    try:
        # Before measurements, which take minutes. Permissions do not tell about read-only and special file
        # systems, so a file is really written.
        with tempfile.TemporaryFile(dir=folder):
            return path
    except OSError as error:
        what, where = f"cannot write in {folder}: {error.strerror}", "--out" if out else str(path.parent)
        raise UserError(what, where=where, hint="choose another --out") from error


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
