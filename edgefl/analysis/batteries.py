"""What a run's jobs take from the batteries of its devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from edgefl.analysis.bounds import Bounds
from edgefl.analysis.device_use import DeviceUse
from edgefl.core.corners import Interval
from edgefl.core.documents import OPTIONAL
from edgefl.store import Reader

_DAY_S = 86_400.0


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


def battery_use(
    reader: Reader, devices: Mapping[str, DeviceUse], virtual_s: float, bounds: Bounds | None = None
) -> dict[str, BatteryUse]:
    """What a run's jobs took, by device; of those whose capacity is known, but for laptops.

    Args:
        reader: the run.
        devices: what its jobs took from each.
        virtual_s: its length.
        bounds: of its energies; None for none.
    """
    capacities: dict[str, float] = reader.meta.get("batteries", {})
    if not capacities:
        return {}
    found = {
        device: _use(devices[device], capacity_j, virtual_s)
        for device, capacity_j in capacities.items()
        if device in devices
    }
    if bounds is None:
        return found
    rounds = _rounds_between(reader, bounds, virtual_s)
    return {
        device: replace(use, per_round_between=_share(rounds[device], use.capacity_j))
        if device in rounds
        else use
        for device, use in found.items()
    }


def _share(joules: Interval, capacity_j: float) -> Interval:
    return Interval(joules.low / capacity_j, None if joules.high is None else joules.high / capacity_j)


def _rounds_between(reader: Reader, bounds: Bounds, virtual_s: float) -> dict[str, Interval]:
    """The bounds of what a round takes from a client of each device that had a job in one, in joules."""
    of_kind = {row["kind"]: row["device"] for row in reader.rows("kinds")}
    devices = sorted(set(of_kind.values()))
    device = np.zeros(max(of_kind) + 1, dtype=np.int64)
    device[list(of_kind)] = [devices.index(name) for name in of_kind.values()]
    exchanges = reader.rows("exchanges", "place")
    # What is not of a round counts nothing.
    weight = np.array([1 / row["every"] if row["at"] == "round" else 0.0 for row in exchanges])
    shape, jobs = (len(devices), len(exchanges)), bounds.jobs
    group, size = device[jobs.kind] * shape[1] + jobs.exchange, shape[0] * shape[1]
    counts = np.bincount(group, minlength=size).reshape(shape)
    ends = []
    for end in bounds.by_job(virtual_s):
        sums = np.zeros(size)
        for places, taken in end:
            sums += np.bincount(group[places], sum((*taken.stage_j, *taken.tail_j)), size)
        means = np.divide(sums.reshape(shape), counts, out=np.zeros(shape), where=counts > 0)
        ends.append(np.where(weight > 0, means * weight, 0.0).sum(axis=1).tolist())
    took_part = ((counts > 0) * weight).sum(axis=1) > 0
    return {
        name: Interval.of(*(end[place] for end in ends))
        for place, name in enumerate(devices)
        if took_part[place]
    }


def _use(use: DeviceUse, capacity_j: float, virtual_s: float) -> BatteryUse:
    """Of one device's jobs, in a run of some length."""
    taken = None if use.joules is None or not virtual_s else use.joules / (use.clients * capacity_j)
    per_day = None if taken is None else taken * _DAY_S / virtual_s
    return BatteryUse(
        clients=use.clients,
        capacity_j=capacity_j,
        joules=use.joules,
        per_round=None if use.joules_per_round is None else use.joules_per_round / capacity_j,
        per_day=per_day,
        days=1 / per_day if per_day else None,
    )
