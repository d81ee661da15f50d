"""A roofline device of this machine: kernels, steps and inference, and the numbers fitted to them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from edgefl.calibrate import record, suites
from edgefl.calibrate.fit import fit
from edgefl.calibrate.host import Host
from edgefl.calibrate.inference import runtime
from edgefl.calibrate.measure import Timing
from edgefl.calibrate.outcome import Outcome, checked, notes_of, observations, row
from edgefl.calibrate.session import Session
from edgefl.calibrate.workloads import STEP, work_of
from edgefl.core.cost import Work
from edgefl.core.devices import Board

Works = Mapping[str, Work]


def roofline_device(name: str, session: Session, machine: Host) -> Outcome:
    """Measures, fits, and holds the result against all networks.

    Raises:
        RunError: a measuring process failed.
    """
    kernels, steps, effort = suites.kernels(), suites.steps(), session.effort
    groups = [kernels, *steps]
    infers = effort.inference_s > 0
    session.expect(effort.repeats * (len(groups) + infers) + infers)
    works = {one.name: work_of(one) for one in chain(*groups)}
    timings, loaded_bytes = session.timed(
        groups, [effort.kernel_s, *(effort.step_s / len(one) for one in steps)]
    )
    inferred = _inferred(session, works) if infers else []
    copy = next(one for one in timings if one.workload.kind == suites.COPY)
    bandwidth, stream = record.bandwidth(copy, works, session.how)
    # What is read off the copy directly the fit need not explain again.
    found = fit(observations([one for one in timings if one is not copy], works), bandwidth)
    peak = record.peak(record.fastest([*timings, *inferred], works), found, session.how)
    data = record.roofline(machine, peak, stream, found, session.how)
    if infers:
        inference = fit(observations(inferred, works), bandwidth, most_dense=peak[0])
        circumstances = session.how.of(runtime())
        data["inference"] = {"runtime": runtime(), **record.efficiencies(inference, peak[0], circumstances)}
    trained = [one for one in timings if one.workload.kind == STEP]
    data |= record.board(machine, loaded_bytes, trained, session.how)
    device = checked(name, data)
    return Outcome(
        data,
        _rows(trained, works, device, inference=False),
        _rows(inferred, works, device, inference=True),
        notes_of([*timings, *inferred], machine),
    )


def _inferred(session: Session, works: dict[str, Work]) -> list[Timing]:
    """ONNX Runtime's timings; adds the workloads' kernels to ``works``."""
    with tempfile.TemporaryDirectory() as folder:
        workloads = [replace(one, name=f"inference: {one.name}") for one in suites.inference(Path(folder))]
        works |= {one.name: work_of(one) for one in workloads}
        session.export(workloads)
        return session.timed([workloads], [session.effort.inference_s])[0]


def _rows(timings: Sequence[Timing], works: Works, device: Board, *, inference: bool) -> list[dict[str, Any]]:
    """What was measured of each network, and what the device predicts."""
    clock = device.clock(device.title, "fp32", inference=inference)
    return [row(one, clock.time(works[one.workload.name]).seconds, one.workload.use) for one in timings]
