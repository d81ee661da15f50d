"""A device of kind "measured": the networks' step times over batch sizes, and no model between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edgefl.calibrate import record, suites
from edgefl.calibrate.fit import fit
from edgefl.calibrate.host import Host
from edgefl.calibrate.measure import Timing
from edgefl.calibrate.outcome import Outcome, checked, notes_of, observations, row
from edgefl.calibrate.session import Session
from edgefl.calibrate.workloads import FIT, HELD_OUT, work_of
from edgefl.core.cost import Work
from edgefl.core.devices.measured import fingerprint

Works = Mapping[str, Work]


def measured_device(name: str, session: Session, machine: Host) -> Outcome:
    """Measures every network at every batch size.

    Bandwidth and launch overhead, which a measured device has for work without products, are a roofline's.

    Raises:
        RunError: a measuring process failed.
    """
    kernels, curves, effort = suites.kernels(), suites.curve(session.effort.batches), session.effort
    session.expect(effort.repeats * (1 + len(curves)))
    works = {one.name: work_of(one) for group in (kernels, *curves) for one in group}
    budgets = [effort.kernel_s, *[effort.step_s / len(effort.batches)] * len(curves)]
    timings, loaded_bytes = session.timed([kernels, *curves], budgets)
    small, large = timings[: len(kernels)], timings[len(kernels) :]
    copy = next(one for one in small if one.workload.kind == suites.COPY)
    bandwidth, stream = record.bandwidth(copy, works, session.how)
    seen = [one for one in timings if one is not copy and one.workload.use == FIT]
    runtime = f"{record.torch_runtime()}, {session.how.in_threads}"
    data = {
        "title": machine.title,
        "category": machine.category,
        "kind": "measured",
        "runtime": runtime,
        "networks": _networks(large, works, session),
        "memory_bandwidth": stream,
        "launch_overhead": record.launch(fit(observations(seen, works), bandwidth), session.how),
        **record.board(machine, loaded_bytes, large, session.how),
    }
    checked(name, data)
    return Outcome(data, _between(large), notes=notes_of(timings, machine))


def _networks(timings: Sequence[Timing], works: Works, session: Session) -> dict[str, Any]:
    """The curves, by what their steps are recognised by."""
    found: dict[str, Any] = {}
    for one in timings:
        work = works[one.workload.name]
        shape = "x".join(map(str, one.workload.settings["shape"]))
        network = f"{one.workload.settings['model']} on {shape}, fedavg with SGD"
        curve = found.setdefault(fingerprint(work), {"network": network, "points": []})
        curve["points"].append(
            {
                "batch": one.workload.batch,
                "flops": work.flops,
                "seconds": record.number(
                    f"{one.seconds * 1e3:.5g} ms",
                    "measured",
                    f"{session.how.of(record.torch_runtime())}; spread {one.spread:.0%}",
                ),
            }
        )
    return found


def _between(timings: Sequence[Timing]) -> list[dict[str, Any]]:
    """Every point; those between two others as these alone would predict them."""
    return [
        row(one, predicted, FIT if predicted is None else HELD_OUT)
        for before, one, after in zip((None, *timings), timings, (*timings[1:], None), strict=False)
        for predicted in (_interpolated(before, one, after),)
    ]


def _interpolated(before: Timing | None, one: Timing, after: Timing | None) -> float | None:
    """The straight line between two neighbours; None at the end of a curve."""
    settings = one.workload.settings
    if before is None or after is None:
        return None
    if before.workload.settings != settings or after.workload.settings != settings:
        return None
    low, high = before.workload.batch, after.workload.batch
    share = (one.workload.batch - low) / (high - low)
    return before.seconds * (1 - share) + after.seconds * share
