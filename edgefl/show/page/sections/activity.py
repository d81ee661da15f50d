"""How many clients are busy, how stale merged uploads are, and who took part."""

from collections.abc import Iterator, Sequence

import numpy as np

from edgefl.analysis.explain.path import rounds_of
from edgefl.analysis.run import Run
from edgefl.core.arrays import Floats, Ints
from edgefl.show.page.frames import Block, Frame, FrameColumn, Plot
from edgefl.show.page.records import Read, Section, Told

_MOST = 400
# Intervals that a wide one covers.
_WIDE = 10
_DETAIL = FrameColumn("", told=False)
_ACTIVE = {"of": _DETAIL, "t_s": FrameColumn("virtual time", "s"), "clients": FrameColumn("active clients")}
_STALE = {"of": _DETAIL, "t_s": FrameColumn("virtual time", "s"), "behind": FrameColumn("versions behind")}


def section(told: Told, read: Sequence[Sequence[Block]]) -> Section:
    """Clients at work and the staleness of uploads of all runs."""
    blocks = [block for one in read for block in one]
    active = Frame(_ACTIVE, [block for block in blocks if "clients" in block])
    stale = Frame(_STALE, [block for block in blocks if "behind" in block])
    plots = [
        Plot(
            "active",
            "Active clients",
            "Clients that are receiving, working or transmitting, over virtual time: the mean over each"
            " fortieth of a run. Of one run also that over each four-hundredth, and the most at once.",
            "no client has been asked for anything yet.",
            "lines",
            active,
            x=["t_s"],
            y=["clients"],
            runs="all",
            detail="of",
            whole="mean over a fortieth",
            log="auto",
            step=True,
        ),
        Plot(
            "staleness",
            "Staleness of merged uploads",
            "How many versions the server's model was ahead of the one that a merged upload had started from,"
            " in the mean; of one run also the most.",
            "every upload was merged into the version it had started from."
            if any(one.summary.merged_clients for one in told.runs)
            else "nothing has been merged yet.",
            "lines",
            stale,
            x=["t_s"],
            y=["behind"],
            runs="all",
            detail="of",
            whole="mean",
            log="auto",
            missing="no upload was stale",
        ),
    ]
    return Section("activity", "Activity", plots)


def read(one: Read) -> list[Block]:
    """Those of a run.

    A job is in flight from its dispatch until its upload has arrived, or until it is late, lost or cut before
    that; while its client is away or paused too, and not while its upload waits to be merged. All exchanges
    count. Each step begins at its time; the last is the end.
    """
    found, end_s = one.run, one.summary.virtual_s
    stale = list(_staleness(found, one.place))
    if not len(found.jobs) or end_s <= 0:
        return stale
    edges = np.linspace(0.0, end_s, _MOST + 1)
    means, most = _in_flight(found.jobs.dispatched_s, found.until_s, edges)
    wide = means.reshape(-1, _WIDE).mean(axis=1)
    drawn = (
        ("", edges[::_WIDE], wide),
        ("mean over a four-hundredth", edges, means),
        ("most at once", edges, most),
    )
    active: list[Block] = [
        {"run": one.place, "of": of, "t_s": times.tolist(), "clients": [*values.tolist(), values[-1].item()]}
        for of, times, values in drawn
    ]
    return active + stale


def _in_flight(start_s: Floats, end_s: Floats, edges: Floats) -> tuple[Floats, Ints]:
    """The mean and the largest number of some spans of time that cover a moment, between ascending edges.

    Args:
        start_s, end_s: of each span, (n,).
        edges: (bins + 1,); the first is at most the first start, the last at least the last end.

    Returns:
        (bins,) each.
    """
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


def _staleness(found: Run, place: int) -> Iterator[Block]:
    """By how many versions merged jobs were behind, in rounds that took jobs; none if none was.

    That is the server's version before the merge less the one that the job started from. Of more than 400
    merges, the last of as many in a row as it takes.
    """
    jobs, merges, mine = found.jobs, found.merges, found.merged_in_rounds()
    into = jobs.into_version[mine]
    behind = into - 1 - jobs.version[mine]
    starts = np.flatnonzero(np.diff(into, prepend=-1))
    if len(starts) > _MOST:
        starts = starts[np.linspace(0, len(starts), _MOST, endpoint=False).astype(np.int64)]
    if not behind.any():
        return
    ends = np.append(starts[1:], len(into))
    times = merges.t_s[np.searchsorted(merges.version, into[ends - 1])].tolist()
    means, most = np.add.reduceat(behind, starts) / (ends - starts), np.maximum.reduceat(behind, starts)
    for of, values in (("", means), ("most", most)):
        yield {"run": place, "of": of, "t_s": times, "behind": values.tolist()}


_PARTICIPATION = {
    "round": FrameColumn("round"),
    "fairness": FrameColumn("Jain's index", "index"),
    "distinct": FrameColumn("participating clients"),
    "admitted": FrameColumn("admitted clients"),
}


def participation(told: Told, read: Sequence[Sequence[Block]]) -> Section:
    """Participation and fairness of all runs."""
    del told
    frame = Frame(_PARTICIPATION, [one for each in read for one in each])
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


def took_part(one: Read) -> list[Block]:
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
