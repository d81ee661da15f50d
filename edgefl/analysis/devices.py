"""What jobs take from the clients of each device, and from their batteries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from edgefl.analysis.run import Run
from edgefl.analysis.sums import Spent, sums
from edgefl.core.corners import Interval
from edgefl.core.documents import OPTIONAL

_DAY_S = 86_400.0


@dataclass(frozen=True)
class DeviceUse:
    """What jobs take from the clients of one device.

    Attributes:
        clients: how many were admitted.
        joules: the energy of all their jobs, whatever became of them, and of the tails that these left open;
            None where that of one of the clients is unknown. Where it is known of all devices, it adds up to
            the run's energy.
        joules_per_round: what a round takes from a client that takes part: the mean energy of a job, summed
            over the exchanges of a round; None where it is unknown, or none took part.
    """

    clients: int
    joules: float | None
    joules_per_round: float | None


@dataclass(frozen=True)
class BatteryUse:
    """What jobs take from the batteries of the clients of one device.

    Shares are of a full battery; None where an energy is unknown, or nothing happened.

    Attributes:
        clients: how many were admitted.
        capacity_j: energy of a full battery.
        joules: energy of all their jobs, whatever became of them, and of the tails that these left open.
        per_round: what a round takes from a client that takes part: the mean energy of a job, summed over
            the exchanges of a round.
        per_day: what a day takes, in the mean over all these clients: ``joules`` / (``clients`` x
            ``capacity_j``) x 24 h / the run's virtual time.
        days: until a client has used the energy of a full battery: 1 / ``per_day``.
        per_round_between: the bounds of ``per_round``, where numbers of devices or links are intervals.
    """

    clients: int
    capacity_j: float
    joules: float | None
    per_round: float | None
    per_day: float | None
    days: float | None
    per_round_between: Interval | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class Work:
    """One exchange's work of the clients of one device, as planned.

    Attributes:
        compute_s: the mean time to compute, before slowdown and jitter.
        memory_bytes: the largest need.
    """

    compute_s: float
    memory_bytes: int


# Over the clients of a device, whose models may differ.
_WORK_SQL = """
SELECT exchange, device, SUM(work_s * clients) / SUM(clients) AS compute_s, MAX(peak_bytes) AS memory_bytes
FROM prices JOIN kinds USING (kind)
JOIN (SELECT kind, COUNT(*) AS clients FROM fleet WHERE admitted GROUP BY kind) USING (kind)
GROUP BY exchange, device ORDER BY MIN(kind)
"""


def work(run: Run) -> dict[str, dict[str, Work]]:
    """That of a run, by exchange and device."""
    found: dict[str, dict[str, Work]] = {}
    for row in run.reader.query(_WORK_SQL):
        found.setdefault(row["exchange"], {})[row["device"]] = Work(row["compute_s"], row["memory_bytes"])
    return found


def device_use(run: Run) -> dict[str, DeviceUse]:
    """What a run's jobs took, by device; of those with an admitted client."""
    device, exchanges = run.clients.device, len(run.names)
    spent = sums(
        run, device[run.jobs.client] * exchanges + run.jobs.exchange, len(run.device_names) * exchanges
    )
    admitted = np.bincount(device[run.clients.admitted], minlength=len(run.device_names)).tolist()
    unknown = set(device[run.took_part & ~run.known].tolist())
    return {
        name: DeviceUse(clients, None, None)
        if place in unknown
        else _use(run, clients, spent[place * exchanges :][:exchanges])
        for place, (name, clients) in enumerate(zip(run.device_names, admitted, strict=True))
        if clients
    }


def _use(run: Run, clients: int, spent: Sequence[Spent]) -> DeviceUse:
    """Of one device's jobs, by exchange."""
    pairs = zip(spent, run.exchanges, strict=True)
    # Of an exchange that is not in each round, its part.
    rounds = [
        (one.joules or 0.0) / one.jobs / row["every"]
        for one, row in pairs
        if row["at"] == "round" and one.jobs
    ]
    joules = math.fsum(one.joules or 0.0 for one in spent)
    return DeviceUse(clients, joules, math.fsum(rounds) if rounds else None)


def battery_use(run: Run, devices: Mapping[str, DeviceUse], virtual_s: float) -> dict[str, BatteryUse]:
    """What a run's jobs took from batteries, by device; of those with a known capacity, but for laptops.

    Args:
        run: the run.
        devices: what its jobs took from each.
        virtual_s: its length.
    """
    capacities: dict[str, float] = run.reader.meta.get("batteries", {})
    rounds = _rounds_between(run, virtual_s) if capacities and run.bounds else {}
    found = {}
    for name, capacity_j in capacities.items():
        if name not in devices:
            continue
        use = devices[name]
        taken = None if use.joules is None or not virtual_s else use.joules / (use.clients * capacity_j)
        per_day = None if taken is None else taken * _DAY_S / virtual_s
        per_round = None if use.joules_per_round is None else use.joules_per_round / capacity_j
        days = 1 / per_day if per_day else None
        ends = tuple(None if end is None else end / capacity_j for end in rounds.get(name, ()))
        between = Interval.of(*ends) if ends else None
        found[name] = BatteryUse(use.clients, capacity_j, use.joules, per_round, per_day, days, between)
    return found


def _rounds_between(run: Run, virtual_s: float) -> dict[str, Interval]:
    """The bounds of what a round takes from a client of each device that had a job in one, in joules."""
    assert run.bounds is not None  # noqa: S101 - who calls it looked
    # What is not of a round counts nothing.
    weight = np.array([1 / row["every"] if row["at"] == "round" else 0.0 for row in run.exchanges])
    shape = len(run.device_names), len(run.names)
    group, size = run.clients.device[run.jobs.client] * shape[1] + run.jobs.exchange, shape[0] * shape[1]
    counts = np.bincount(group, minlength=size).reshape(shape)
    ends = []
    for end in run.bounds.by_job(virtual_s):
        taken_j = np.zeros(size)
        for places, taken in end:
            taken_j += np.bincount(group[places], sum((*taken.stage_j, *taken.tail_j)), size)
        means = np.divide(taken_j.reshape(shape), counts, out=np.zeros(shape), where=counts > 0)
        ends.append(np.where(weight > 0, means * weight, 0.0).sum(axis=1).tolist())
    took_part = ((counts > 0) * weight).sum(axis=1) > 0
    return {
        name: Interval.of(*(end[place] for end in ends))
        for place, name in enumerate(run.device_names)
        if took_part[place]
    }
