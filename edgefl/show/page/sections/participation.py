"""Who took part, over rounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgefl.analysis.explain.path import rounds_of
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
    jobs, merges, mine = found.jobs, found.merges, found.merged_in_rounds()
    if not len(mine):
        return []
    last = rounds_of(found).last
    last = last[found.in_rounds[merges.exchange[last]]]
    if len(last) > _MOST:
        last = last[np.linspace(0, len(last) - 1, _MOST).astype(np.int64)]
    ends = np.searchsorted(jobs.into_version[mine], merges.version[last], side="right")
    counts = np.zeros(one.summary.clients, dtype=np.int64)
    fairness, distinct = [], []
    for merged, clients in zip(ends.tolist(), np.split(jobs.client[mine], ends)[:-1], strict=True):
        np.add.at(counts, clients, 1)
        fairness.append(merged**2 / (admitted * int(counts @ counts)) if merged else np.nan)
        distinct.append(np.count_nonzero(counts))
    return [
        {
            "run": one.place,
            "round": merges.round[last].tolist(),
            "fairness": fairness,
            "distinct": distinct,
            "admitted": admitted,
        }
    ]
