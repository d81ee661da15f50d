"""What a run's jobs take from the clients of each device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from edgefl.analysis.usage import Spent, Usage
from edgefl.store import Reader

_CLIENTS_SQL = """
SELECT device, SUM(clients) AS clients
FROM (SELECT kind, COUNT(*) AS clients FROM fleet WHERE admitted GROUP BY kind) JOIN kinds USING (kind)
GROUP BY device ORDER BY device
"""


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


# Over the clients of a device, whose models may differ.
_WORK_SQL = """
SELECT exchange, device, SUM(work_s * clients) / SUM(clients) AS compute_s, MAX(peak_bytes) AS memory_bytes
FROM prices JOIN kinds USING (kind)
JOIN (SELECT kind, COUNT(*) AS clients FROM fleet WHERE admitted GROUP BY kind) USING (kind)
GROUP BY exchange, device ORDER BY MIN(kind)
"""


@dataclass(frozen=True)
class Work:
    """One exchange's work of the clients of one device, as planned.

    Attributes:
        compute_s: the mean time to compute, before slowdown and jitter.
        memory_bytes: the largest need.
    """

    compute_s: float
    memory_bytes: int


def work(reader: Reader) -> dict[str, dict[str, Work]]:
    """That of a run, by exchange and device."""
    found: dict[str, dict[str, Work]] = {}
    for row in reader.query(_WORK_SQL):
        found.setdefault(row["exchange"], {})[row["device"]] = Work(row["compute_s"], row["memory_bytes"])
    return found


def device_use(reader: Reader, used: Usage) -> dict[str, DeviceUse]:
    """What a run's jobs took, by device; of those with an admitted client.

    Args:
        reader: the run.
        used: what its jobs cost.
    """
    every = {row["exchange"]: row["every"] for row in reader.rows("exchanges") if row["at"] == "round"}
    return {
        row["device"]: DeviceUse(row["clients"], None, None)
        if row["device"] in used.unknown
        else _use(used.by_device.get(row["device"], {}), every, row["clients"])
        for row in reader.query(_CLIENTS_SQL)
    }


def _use(spent: Mapping[str, Spent], every: Mapping[str, int], clients: int) -> DeviceUse:
    """Of one device's jobs, by exchange.

    Args:
        spent: what they cost.
        every: of each exchange in rounds, the number of rounds between two of them.
        clients: how many clients have the device.
    """
    joules = math.fsum(one.joules or 0.0 for one in spent.values())
    rounds = [(one.joules or 0.0) / one.jobs / every[name] for name, one in spent.items() if name in every]
    return DeviceUse(clients, joules, math.fsum(rounds) if rounds else None)
