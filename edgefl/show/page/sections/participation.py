"""Who took part, over rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgefl.analysis.run import Ints, Run

_MOST = 400


@dataclass(frozen=True)
class Participation:
    """Of one run: its rounds that had a merge, or 400 of them, evenly spaced, with the last.

    The jobs of a merge count for its round, whenever they were dispatched. Exchanges before and after the
    rounds do not count.

    Attributes:
        run: its place.
        round: rounds, from 0.
        distinct: how many clients had a job merged by its end; at the last, ``Summary.merged_clients``.
        fairness: Jain's index of the jobs merged per admitted client by its end, see ``usage.Usage``; NaN
            while there are none; at the last, ``Summary.fairness``.
    """

    run: int
    round: Sequence[int]
    distinct: Sequence[int]
    fairness: Sequence[float]


def participation(found: Run, run: int, admitted: int) -> list[Participation]:
    """That of a run; none without a round that had a merge.

    Args:
        found: the run's.
        run: its place.
        admitted: how many clients were admitted.
    """
    merges, jobs = found.merges, found.jobs
    in_rounds = found.in_rounds[merges.exchange]
    version, round_ = merges.version[in_rounds], merges.round[in_rounds]
    if not len(version):
        return []
    last = np.flatnonzero(np.diff(round_, append=-1))
    if len(last) > _MOST:
        last = last[np.linspace(0, len(last) - 1, _MOST).astype(np.int64)]
    mine = found.merged_in_rounds()
    before = _before(jobs.client[mine])
    # How many jobs were merged by each round's end.
    merged = np.searchsorted(jobs.into_version[mine], version[last], side="right")
    distinct = np.append(0, np.cumsum(before == 0))[merged]
    # The next one after x jobs of a client adds (x + 1)^2 - x^2.
    squares = np.append(0, np.cumsum(2 * before + 1))[merged]
    fairness = np.divide(merged**2, admitted * squares, out=np.full(len(last), np.nan), where=squares > 0)
    return [Participation(run, round_[last].tolist(), distinct.tolist(), fairness.tolist())]


def _before(clients: Ints) -> Ints:
    """How often the client at each place stands at earlier ones, (n,)."""
    order = np.argsort(clients, kind="stable")
    starts = np.flatnonzero(np.diff(clients[order], prepend=-1))
    sizes = np.diff(starts, append=len(clients))
    before = np.empty(len(clients), dtype=np.int64)
    before[order] = np.arange(len(clients)) - np.repeat(starts, sizes)
    return before
