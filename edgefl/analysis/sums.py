"""What a run's jobs cost, by whatever they are grouped by, and who took part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgefl.analysis.run import Floats, Ints, Run
from edgefl.core.event import ENDINGS, Kind, joules
from edgefl.core.ledger import EnergyTotal

# Places of jobs' endings among the four that there are.
_ENDED = [str(kind) for kind in ENDINGS[1:]]
MERGED = ENDINGS.index(Kind.MERGED)
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
    """What jobs cost, as far as they got.

    Attributes:
        jobs: how many there are.
        bytes: their traffic, which is the sum of
        down_bytes, up_bytes: that of each direction.
        flops: their operations.
        client_s: client-seconds: the time spent receiving, working and sending, summed over jobs.
        joules: their energy, and that of the tails that they left open at the run's end, of those clients
            whose energy in the whole run is known in full, so that parts add up to the run's
            ``EnergyTotal``; None if the jobs are of no such client.
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
        run: the run.
        by: each job's group, (n,), -1 for none; None for one of all.
        groups: how many there are.
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
        halves = np.zeros((2, groups), dtype=np.int64)
        for half, part in zip(
            halves, (values[mine] >> _HALF, values[mine] & ((1 << _HALF) - 1)), strict=True
        ):
            np.add.at(half, by, part)
        return [(high << _HALF) + low for high, low in halves.T.tolist()]

    known = run.known[jobs.client]
    count, of_known = np.bincount(by, minlength=groups).tolist(), real(known.astype(float))
    down, up, flops = (whole(jobs[name]) for name in ("down_bytes", "up_bytes", "flops"))
    seconds, energy = real(busy_s(run)), real(np.where(known, run.joules if tails else joules(jobs), 0.0))
    return [
        Spent(
            count[one], down[one] + up[one], down[one], up[one], flops[one], seconds[one],
            None if count[one] and not of_known[one] else energy[one],
        )
        for one in range(groups)
    ]  # fmt: skip


_HALF = 31


def busy_s(run: Run) -> Floats:
    """How long each job's client was busy with it, (n,)."""
    jobs = run.jobs
    found: Floats = jobs.receive_s + jobs.work_s + jobs.transmit_s
    return found


@dataclass(frozen=True)
class Usage:
    """What a run's jobs cost, and who took part.

    Attributes:
        spent: by ending: "merged" (useful), "late", "lost" and "cut" (wasted).
        wasted: the sum of what was not merged.
        total: the sum of all.
        energy: of all clients.
        joules_by_phase: the same energy by what it was used for; empty if no energy is known.
        waiting_joules: what these clients draw at idle power while uploads of theirs wait to be merged and
            they have nothing else to do; no part of the energy. None if no energy is known.
        bytes_by_part: traffic by part of the payload, of transfers that were completed.
        merged_clients: how many clients had a job merged in a round; exchanges before and after the rounds,
            in which all take part, do not count.
        fairness: Jain's index of the jobs x merged in rounds per admitted client, (sum x)^2 / (n sum x^2):
            1 if all have the same number, 1/n if one has them all; None if there are none. Jain, Chiu and
            Hawe, "A quantitative measure of fairness and discrimination for resource allocation in shared
            computer systems", DEC-TR-301 (1984).
    """

    spent: Mapping[str, Spent]
    wasted: Spent
    total: Spent
    energy: EnergyTotal
    joules_by_phase: Mapping[str, float]
    waiting_joules: float | None
    bytes_by_part: Mapping[str, Moved]
    merged_clients: int
    fairness: float | None


def usage(run: Run) -> Usage:
    """That of all jobs."""
    jobs = run.jobs
    (total,), (wasted,) = sums(run), sums(run, np.where(jobs.ending == MERGED, -1, 0))
    known = int((run.known & run.took_part).sum())
    of_known = run.known[jobs.client]
    tails = np.where(run.known[run.tails["client"]], run.tails["joules"], 0.0)
    phases = {
        phase: float(sum(jobs[name][of_known].sum() for name in names)) for phase, names in _PHASES.items()
    }
    phases["tail"] += float(tails.sum())
    merged = (jobs.ending == MERGED) & run.in_rounds[jobs.exchange]
    each = np.bincount(jobs.client[merged], minlength=len(run.known))
    admitted, squares = int(run.clients.admitted.sum()), int((each**2).sum())
    return Usage(
        spent=dict(zip(_ENDED, sums(run, jobs.ending - 1, len(_ENDED)), strict=True)),
        wasted=wasted,
        total=total,
        energy=EnergyTotal(total.joules if known else None, known, int(run.took_part.sum())),
        joules_by_phase=phases if known else {},
        waiting_joules=float(jobs.waiting_j[of_known].sum()) if known else None,
        bytes_by_part=_by_part(run),
        merged_clients=int((each > 0).sum()),
        fairness=int(each.sum()) ** 2 / (admitted * squares) if squares else None,
    )


def jobs_by_ending(run: Run) -> dict[str, dict[str, int]]:
    """How many jobs each exchange had, by their ending; those that it had."""
    pair = run.jobs.exchange * len(ENDINGS) + run.jobs.ending
    counts = np.bincount(pair, minlength=len(run.names) * len(ENDINGS)).reshape(-1, len(ENDINGS)).tolist()
    return {
        name: {str(ending): count for ending, count in zip(ENDINGS, row, strict=True) if count}
        for name, row in zip(run.names, counts, strict=True)
    }


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
