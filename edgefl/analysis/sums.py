"""What a run's jobs cost, by whatever they are grouped by, and who took part."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple

import numpy as np

from edgefl.analysis.run import Run
from edgefl.core.arrays import Bools, Floats, Ints
from edgefl.core.availability import DAY_S
from edgefl.core.corners import Interval
from edgefl.core.documents import INLINE, OPTIONAL
from edgefl.core.event import ENDINGS, EnergyTotal, Kind, joules

# Places of jobs' endings among the four that there are.
_ENDED = [str(kind) for kind in ENDINGS[1:]]
MERGED = ENDINGS.index(Kind.MERGED)
_HALF = 31
# The parts of a job's energy, by what it was used for.
_PHASES = {
    "receive": ("receive_j",),
    "compute": ("work_j",),
    "transmit": ("transmit_j",),
    "tail": ("work_tail_j", "earlier_tail_j"),
    "idle": ("receive_idle_j", "work_idle_j", "transmit_idle_j"),
}


class Moved(NamedTuple):
    """Bytes that moved in each direction."""

    down: int
    up: int


@dataclass(frozen=True)
class Spent:
    """What jobs cost, as far as they got: client-seconds are spent receiving, working and sending.

    The energy, with that of tails that were open at the run's end, is of those clients whose energy in the
    whole run is known in full, so that parts add up to the run's ``EnergyTotal``; None if the jobs are of no
    such client.
    """

    jobs: int
    bytes: int
    down_bytes: int
    up_bytes: int
    flops: int
    client_s: float
    joules: float | None


def sums(run: Run, by: Ints | None = None, groups: int = 1, *, tails: bool = True) -> list[Spent]:
    """What jobs cost by group.

    Args:
        by: each job's group, (n,), -1 for none; None for one of all.
        tails: whether tails that were open at the run's end count.
    """
    jobs, by = run.jobs, np.zeros(len(run.jobs), dtype=np.int64) if by is None else by
    mine = np.flatnonzero(by >= 0)
    by = by[mine]

    def real(values: Floats) -> list[float]:
        found: list[float] = np.bincount(by, values[mine], groups).astype(float).tolist()
        return found

    def whole(values: Ints) -> list[int]:
        """Sums of integers, which may be too large for 64 bits."""
        high, low = np.zeros((2, groups), dtype=np.int64)
        np.add.at(high, by, values[mine] >> _HALF)
        np.add.at(low, by, values[mine] & ((1 << _HALF) - 1))
        return [(one << _HALF) + other for one, other in zip(high.tolist(), low.tolist(), strict=True)]

    known = run.known[jobs.client]
    count, of_known = np.bincount(by, minlength=groups).tolist(), real(known.astype(float))
    down, up, flops = (whole(jobs[name]) for name in ("down_bytes", "up_bytes", "flops"))
    seconds = real(jobs.receive_s + jobs.work_s + jobs.transmit_s)
    energy = real(np.where(known, run.joules if tails else joules(jobs), 0.0))
    return [
        Spent(
            count[one], down[one] + up[one], down[one], up[one], flops[one], seconds[one],
            None if count[one] and not of_known[one] else energy[one],
        )
        for one in range(groups)
    ]  # fmt: skip


@dataclass(frozen=True)
class Usage:
    """What a run's jobs cost, and who took part.

    Attributes:
        jobs, bytes, down_bytes, up_bytes, flops, client_s: of all clients; see ``Spent``.
        bytes_by_part: traffic by part of the payload, of transfers that were completed.
        energy: of all clients.
        joules_by_phase: the same energy by what it was used for; empty if no energy is known.
        waiting_joules: what the same clients draw at idle power while uploads of theirs wait to be merged and
            they have nothing else to do; no part of the energy. None if no energy is known.
        devices: what jobs took from the clients of each device.
        batteries: the same of those whose capacity is known, but for laptops.
        spent: the same quantities by the ending of jobs: "merged" (useful), "late", "lost" and "cut".
        wasted: the sum of what was not merged.
        utilisation: client-seconds over admitted clients times the run's virtual time: the share of its time
            in which an admitted client receives, works or sends; None if no time passed.
        merged_clients: how many clients had a job merged in a round; exchanges before and after the rounds,
            in which all take part, do not count.
        fairness: Jain's index of the jobs x merged in rounds per admitted client, (sum x)^2 / (n sum x^2):
            1 if all have the same number, 1/n if one has them all; None if there are none. Jain, Chiu and
            Hawe, "A quantitative measure of fairness and discrimination for resource allocation in shared
            computer systems", DEC-TR-301 (1984).
    """

    jobs: int
    bytes: int
    down_bytes: int
    up_bytes: int
    bytes_by_part: Mapping[str, Moved]
    flops: int
    client_s: float
    energy: EnergyTotal = field(metadata={INLINE: EnergyTotal})
    joules_by_phase: Mapping[str, float]
    waiting_joules: float | None
    devices: "Mapping[str, DeviceUse]"
    batteries: "Mapping[str, BatteryUse]"
    spent: Mapping[str, Spent]
    wasted: Spent
    utilisation: float | None
    merged_clients: int
    fairness: float | None


def usage(run: Run, virtual_s: float) -> Usage:
    """That of all jobs of a run that lasted so long."""
    jobs, devices = run.jobs, _device_use(run)
    (total,), (wasted,) = sums(run), sums(run, np.where(jobs.ending == MERGED, -1, 0))
    known = int((run.known & run.took_part).sum())
    of_known = run.known[jobs.client]
    tails = np.where(run.known[run.tails.client], run.tails.joules, 0.0)
    phases = {
        phase: float(sum(jobs[name][of_known].sum() for name in names)) for phase, names in _PHASES.items()
    }
    phases["tail"] += float(tails.sum())
    merged = (jobs.ending == MERGED) & run.in_rounds[jobs.exchange]
    each = np.bincount(jobs.client[merged], minlength=len(run.known))
    admitted, squares = int(run.clients.admitted.sum()), int((each**2).sum())
    return Usage(
        **{key: value for key, value in vars(total).items() if key != "joules"},
        bytes_by_part=_by_part(run),
        energy=EnergyTotal(total.joules if known else None, known, int(run.took_part.sum())),
        joules_by_phase=phases if known else {},
        waiting_joules=float(jobs.waiting_j[of_known].sum()) if known else None,
        devices=devices,
        batteries=_battery_use(run, devices, virtual_s),
        spent=dict(zip(_ENDED, sums(run, jobs.ending - 1, len(_ENDED)), strict=True)),
        wasted=wasted,
        utilisation=total.client_s / (admitted * virtual_s) if admitted * virtual_s else None,
        merged_clients=int((each > 0).sum()),
        fairness=int(each.sum()) ** 2 / (admitted * squares) if squares else None,
    )


def _by_part(run: Run) -> dict[str, Moved]:
    """Bytes by part and direction: what each job's payload holds, times the jobs that moved it."""
    models = sorted({row["model"] for row in run.kinds})
    model = np.array([models.index(row["model"]) for row in run.kinds])[run.clients.kind]
    pair = run.jobs.exchange * len(models) + model[run.jobs.client]
    times = {
        way: np.bincount(pair[~np.isnan(at_s)], minlength=len(run.names) * len(models)).tolist()
        for way, at_s in (("down", run.jobs.received_s), ("up", run.jobs.arrived_s))
    }
    parts: dict[str, dict[str, int]] = defaultdict(lambda: {"down": 0, "up": 0})
    for row in run.reader.rows("payloads", "part"):
        place = run.names.index(row["exchange"]) * len(models) + models.index(row["model"])
        if moved := times[row["direction"]][place] * row["bytes"]:
            parts[row["part"]][row["direction"]] += moved
    return {name: Moved(**part) for name, part in parts.items()}


class Turnout(NamedTuple):
    """How many clients a round asks for; how many of these began and were merged, in the mean over rounds."""

    asked: int
    dispatched: float
    merged: float


def mean_turnout(found: Sequence[Turnout]) -> Turnout:
    """That of several runs, of at least one."""
    asked, dispatched, merged = map(fmean, zip(*found, strict=True))
    return Turnout(round(asked), dispatched, merged)


def turnout(run: Run) -> Turnout | None:
    """That of a run; None of a policy that asks for no rounds, and before the first one is over."""
    asked, rounds = run.reader.meta.get("participants"), run.reader.meta.get("rounds")
    if not asked or not rounds:
        return None
    every = np.array([row["every"] if row["at"] == "round" else 0 for row in run.exchanges])

    def mean(which: Bools) -> float:
        count = np.bincount(run.jobs.exchange[which], minlength=len(every))
        return float((count * every).max(initial=0) / rounds)

    return Turnout(asked, mean(run.jobs.ending >= 0), mean(run.jobs.ending == MERGED))


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
    """What jobs take from the batteries of the clients of one device, of which ``clients`` were admitted.

    Shares are of a full battery; None where an energy is unknown, or nothing happened.

    Attributes:
        joules, per_round: as of ``DeviceUse``, the latter as a share.
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
class WorkSums:
    """One exchange's work of the clients of one device, as planned.

    It computes for ``compute_s`` in the mean, before slowdown and jitter.
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


def work(run: Run) -> dict[str, dict[str, WorkSums]]:
    """That of a run, by exchange and device."""
    found: dict[str, dict[str, WorkSums]] = {}
    for row in run.reader.query(_WORK_SQL):
        found.setdefault(row["exchange"], {})[row["device"]] = WorkSums(row["compute_s"], row["memory_bytes"])
    return found


def _device_use(run: Run) -> dict[str, DeviceUse]:
    """What a run's jobs took, by device; of those with an admitted client."""
    device, found = run.clients.device, {}
    admitted = np.bincount(device[run.clients.admitted], minlength=len(run.device_names)).tolist()
    unknown = set(device[run.took_part & ~run.known].tolist())
    figures = _drained(run, np.where(run.known[run.jobs.client], run.joules, 0.0))
    for place, name in enumerate(run.device_names):
        if admitted[place]:
            joules = (None, None) if place in unknown else figures[place]
            found[name] = DeviceUse(admitted[place], *joules)
    return found


def _drained(run: Run, joules: Floats) -> list[tuple[float, float | None]]:
    """What jobs took by device, given each one's joules: all, and a round's in the mean, None without one."""
    shape = len(run.device_names), len(run.names)
    group, size = run.clients.device[run.jobs.client] * shape[1] + run.jobs.exchange, shape[0] * shape[1]
    counts, sums_j = (np.bincount(group, each, size).reshape(shape) for each in (None, joules))
    # Of an exchange that is not in each round, its part.
    every = np.array([row["every"] if row["at"] == "round" else 0 for row in run.exchanges])
    in_rounds = (counts > 0) & (every > 0)
    rounds_j = np.divide(sums_j, counts * every, out=np.zeros(shape), where=in_rounds).sum(axis=1)
    taken = zip(sums_j.sum(axis=1).tolist(), rounds_j.tolist(), in_rounds.sum(axis=1).tolist(), strict=True)
    return [(whole_j, round_j if took_part else None) for whole_j, round_j, took_part in taken]


def _battery_use(run: Run, devices: Mapping[str, DeviceUse], virtual_s: float) -> dict[str, BatteryUse]:
    """What a run's jobs took from batteries, by device; of those with a known capacity, but for laptops."""
    capacities = {name: one for name, one in run.reader.meta.get("batteries", {}).items() if name in devices}
    ends = [end.taken(virtual_s) for end in run.corners] if capacities else []
    corners = [_drained(run, sum((*end.stage_j, *end.tail_j), np.zeros(1))) for end in ends]
    found = {}
    for name, capacity_j in capacities.items():
        use, place = devices[name], run.device_names.index(name)
        taken = None if use.joules is None or not virtual_s else use.joules / (use.clients * capacity_j)
        per_day = None if taken is None else taken * DAY_S / virtual_s
        per_round = None if use.joules_per_round is None else use.joules_per_round / capacity_j
        bounds_j = [round_j for end in corners if (round_j := end[place][1]) is not None]
        between = Interval.of(*(end_j / capacity_j for end_j in bounds_j)) if bounds_j else None
        days = 1 / per_day if per_day else None
        found[name] = BatteryUse(use.clients, capacity_j, use.joules, per_round, per_day, days, between)
    return found
