"""How many clients are busy, and how stale merged uploads are, over virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgefl.analysis.run import Floats, Ints, Run

_MOST = 400
# Intervals that a wide one covers.
_WIDE = 10


@dataclass(frozen=True)
class Activity:
    """Of one run.

    A job is in flight from its dispatch until its upload has arrived, or until it is late, lost or cut before
    that; while its client is away or paused too, and not while its upload waits to be merged. All exchanges
    count.

    Attributes:
        run: its place.
        t_s: the beginnings of equal intervals of virtual time, from 0 to the run's end, at most 400; empty
            where no time passed.
        interval_s: how long each is.
        active_mean: jobs in flight in each, the mean over its time.
        active_max: the most at once, for however short a time.
        wide_t_s: the beginnings of intervals ten times as long: at most 40.
        wide_mean: the mean over each of these.
        staleness_t_s: times of merges in rounds that took jobs; of more than 400, the last of as many in a
            row as it takes.
        staleness_mean: by how many versions the merged jobs were behind, in the mean: the server's version
            before the merge less the one that the job started from.
        staleness_max: the most.
    """

    run: int
    t_s: Sequence[float]
    interval_s: float
    active_mean: Sequence[float]
    active_max: Sequence[int]
    wide_t_s: Sequence[float]
    wide_mean: Sequence[float]
    staleness_t_s: Sequence[float]
    staleness_mean: Sequence[float]
    staleness_max: Sequence[int]


def activity(found: Run, run: int, end_s: float) -> list[Activity]:
    """That of a run; none without jobs.

    Args:
        found: the run's.
        run: its place.
        end_s: its end in virtual seconds.
    """
    if not len(found.jobs):
        return []
    edges = np.linspace(0.0, end_s, _MOST + 1) if end_s > 0 else np.zeros(1)
    means, most = _in_flight(found.jobs.dispatched_s, found.until_s, edges)
    return [
        Activity(
            run=run,
            t_s=edges[:-1].tolist(),
            interval_s=end_s / _MOST,
            active_mean=means.tolist(),
            active_max=most.tolist(),
            wide_t_s=edges[:-1:_WIDE].tolist(),
            wide_mean=means.reshape(-1, _WIDE).mean(axis=1).tolist(),
            **_staleness(found),
        )
    ]


def _in_flight(start_s: Floats, end_s: Floats, edges: Floats) -> tuple[Floats, Ints]:
    """The mean and the largest number of some spans of time that cover a moment, between ascending edges.

    Args:
        start_s: of each span, (n,).
        end_s: likewise.
        edges: (bins + 1,); the first is at most the first start, the last at least the last end.

    Returns:
        (bins,) each.
    """
    if len(edges) == 1:
        return np.zeros(0), np.zeros(0, dtype=np.int64)
    # From each of these times until the next one, ``level`` spans are open. Edges are among them.
    times = np.concatenate([edges, start_s, end_s])
    steps = np.zeros(len(times), dtype=np.int64)
    steps[len(edges) : len(edges) + len(start_s)], steps[len(edges) + len(start_s) :] = 1, -1
    order = np.argsort(times, kind="stable")
    times, levels = times[order], np.cumsum(steps[order])
    lasting = np.flatnonzero(np.diff(times) > 0)
    times, levels = np.append(times[lasting], times[-1]), levels[lasting]
    first = np.searchsorted(times, edges[:-1])
    means = np.add.reduceat(levels * np.diff(times), first) / np.diff(edges)
    return means, np.maximum.reduceat(levels, first)


def _staleness(found: Run) -> dict[str, list[Any]]:
    """The columns of staleness."""
    jobs, merges, mine = found.jobs, found.merges, found.merged_in_rounds()
    into = jobs.into_version[mine]
    behind = into - 1 - jobs.version[mine]
    starts = np.flatnonzero(np.diff(into, prepend=-1))
    if len(starts) > _MOST:
        starts = starts[np.linspace(0, len(starts), _MOST, endpoint=False).astype(np.int64)]
    if not len(starts):
        return {"staleness_t_s": [], "staleness_mean": [], "staleness_max": []}
    ends = np.append(starts[1:], len(into))
    at = np.searchsorted(merges.version, into[ends - 1])
    return {
        "staleness_t_s": merges.t_s[at].tolist(),
        "staleness_mean": (np.add.reduceat(behind, starts) / (ends - starts)).tolist(),
        "staleness_max": np.maximum.reduceat(behind, starts).tolist(),
    }
