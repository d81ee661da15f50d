"""Who took part, over rounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgefl.core.arrays import Ints
from edgefl.show.page.frames import Block, Frame, FrameColumn, Plot
from edgefl.show.page.records import Read, Section, Told

_MOST = 400
_COLUMNS = {
    "round": FrameColumn("round"),
    "fairness": FrameColumn("Jain's index", "index"),
    "distinct": FrameColumn("participating clients"),
    "admitted": FrameColumn("admitted clients"),
}


def section(told: Told, read: Sequence[Sequence[Block]]) -> Section:
    """Participation and fairness of all runs."""
    del told
    frame = Frame(_COLUMNS, [one for each in read for one in each])
    plot = Plot(
        "participation",
        "Participation and fairness",
        "Clients with at least one job merged so far, and Jain's fairness index of jobs merged per client: 1"
        " if all have the same number, 1/n if one of n clients has them all.",
        "nothing has been merged yet.",
        "lines",
        frame,
        x=["round"],
        y=["fairness", "distinct"],
        runs="all",
        log="auto",
        missing="nothing was merged",
    )
    return Section("participation", "Participation", [plot])


def read(one: Read) -> list[Block]:
    """A run's rounds that had a merge, or 400 of them, evenly spaced, with the last.

    The jobs of a merge count for its round, whenever they were dispatched. Exchanges before and after the
    rounds do not count. At the last, ``distinct`` is ``Summary.merged_clients``, and ``fairness``, Jain's
    index of the jobs merged per admitted client, ``Summary.fairness``.
    """
    found, admitted = one.run, one.summary.clients - one.summary.refused
    merges, jobs = found.merges, found.jobs
    in_rounds = found.in_rounds[merges.exchange]
    version, round_ = merges.version[in_rounds], merges.round[in_rounds]
    mine = found.merged_in_rounds()
    if not len(mine):
        return []
    last = np.flatnonzero(np.diff(round_, append=-1))
    if len(last) > _MOST:
        last = last[np.linspace(0, len(last) - 1, _MOST).astype(np.int64)]
    before = _merged_before(jobs.client[mine])
    # How many jobs were merged by each round's end.
    merged = np.searchsorted(jobs.into_version[mine], version[last], side="right")
    distinct = np.append(0, np.cumsum(before == 0))[merged]
    # The next one after x jobs of a client adds (x + 1)^2 - x^2.
    squares = np.append(0, np.cumsum(2 * before + 1))[merged]
    fairness = np.divide(merged**2, admitted * squares, out=np.full(len(last), np.nan), where=squares > 0)
    return [
        {
            "run": one.place,
            "round": round_[last].tolist(),
            "fairness": fairness.tolist(),
            "distinct": distinct.tolist(),
            "admitted": admitted,
        }
    ]


def _merged_before(clients: Ints) -> Ints:
    """How often the client at each place stands at earlier ones, (n,)."""
    order = np.argsort(clients, kind="stable")
    starts = np.flatnonzero(np.diff(clients[order], prepend=-1))
    sizes = np.diff(starts, append=len(clients))
    before = np.empty(len(clients), dtype=np.int64)
    before[order] = np.arange(len(clients)) - np.repeat(starts, sizes)
    return before
