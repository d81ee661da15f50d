"""Who a run waited for: virtual seconds lost to clients and to classes of devices.

A merge of jobs that were dispatched together waits for the last of them. What a client (or a device, which
stands for all clients that have it) costs is how much earlier the merge would have had all its jobs without
it: the time between the merge's last job and the last one of the others. A merge of its jobs alone lost
nothing to it.

Those seconds are divided among the parts of the last job, in proportion to how far each part exceeds its
mean over the others' jobs:

- link: receiving and sending, with handshakes and repeated uploads;
- compute: the work at the device's full speed;
- slowdown: what the client's constant slowdown adds;
- jitter: what chance and a changing speed, such as throttling, add to both;
- away: the rest of the job's time, in which its client was not available.

A lost job counts until it ended, if the merge waited for it. Where jobs that were dispatched together go into
several merges, or one merge takes jobs of several dispatches, as with asynchronous policies, the server waits
for nobody in particular, and the merge is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgefl.analysis.timeline import Bools, Fleet, Floats, Ints, Jobs, fleet_of, jobs_of
from edgefl.analysis.usage import ENDINGS
from edgefl.core.documents import INLINE
from edgefl.core.event import Kind
from edgefl.store import Reader

PARTS = ("link", "compute", "slowdown", "jitter", "away")

Columns: TypeAlias = dict[str, NDArray[Any]]

# The endings of jobs whose end a merge may have waited for.
_WAITED = (ENDINGS.index(Kind.MERGED), ENDINGS.index(Kind.LOST))
# Of a job's seconds: a difference below it is rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Lost:
    """Virtual seconds that merges waited for somebody; see this module for what counts.

    Attributes:
        merges: how many had to wait.
        lost_s: how long, all in all.
        link_s, compute_s, slowdown_s, jitter_s, away_s: the same, by what took so long.
        others_idle: the share of these merges' time in which the others' clients had nothing to do, from the
            dispatch to the last job's end.
    """

    merges: int
    lost_s: float
    link_s: float
    compute_s: float
    slowdown_s: float
    jitter_s: float
    away_s: float
    others_idle: float


@dataclass(frozen=True)
class WaitedClient:
    """A client that merges waited for.

    Attributes:
        client: its number.
        device: its device.
        slowdown: its constant slowdown.
        lost: what it cost.
    """

    client: int
    device: str
    slowdown: float
    lost: Lost = field(metadata={INLINE: Lost})


@dataclass(frozen=True)
class WaitedDevice:
    """A class of devices that merges waited for.

    Attributes:
        device: its name.
        clients: how many clients have it.
        lost: what they cost together.
    """

    device: str
    clients: int
    lost: Lost = field(metadata={INLINE: Lost})


class Waits(NamedTuple):
    """The merges that waited for somebody, columns (n,) in no order of their own.

    Attributes:
        version: the version that the merge made.
        who: the client or the group of clients that it waited for.
        lost_s: how long.
        parts_s: the same, by what took so long, (n, 5): see ``PARTS``.
        busy_s: how long the others' clients were busy, from the dispatch to the last job's end.
        whole_s: how long they all could have been.
    """

    version: Ints
    who: Ints
    lost_s: Floats
    parts_s: Floats
    busy_s: Floats
    whole_s: Floats


def waited(reader: Reader, jobs: Jobs | None = None) -> tuple[list[WaitedClient], list[WaitedDevice]]:
    """The clients and the devices that a run waited for, those that cost most first.

    Args:
        reader: the run.
        jobs: its jobs, if they are read already.
    """
    fleet = fleet_of(reader)
    names, device = fleet.device_names, fleet.device
    together, parts = _read(reader, jobs, fleet)
    clients = [
        WaitedClient(client, names[device[client]], float(fleet.slowdown[client]), lost)
        for client, lost in _lost(_waits(together["client"], together, parts)).items()
    ]
    numbers = np.bincount(device, minlength=len(names))
    devices = [
        WaitedDevice(names[place], int(numbers[place]), lost)
        for place, lost in _lost(_waits(device[together["client"]], together, parts)).items()
    ]
    return clients, devices


def waits(reader: Reader, jobs: Jobs | None = None) -> Waits:
    """The client that each merge of a run waited for; the arguments are those of ``waited``."""
    together, parts = _read(reader, jobs, fleet_of(reader))
    return _waits(together["client"], together, parts)


def _read(reader: Reader, jobs: Jobs | None, fleet: Fleet) -> tuple[Columns, Floats]:
    """The jobs of merges that may have waited for one of them, and their ``PARTS``; see ``_waits``."""
    jobs = jobs_of(reader) if jobs is None else jobs
    together = _together(jobs)
    kinds = fleet.kind[together["client"]]
    full_speed_s = planned_s(reader, together["place"], kinds, together["steps"])
    return together, _parts(together, full_speed_s, fleet.slowdown[together["client"]])


def _waits(whose: Ints, jobs: Columns, parts: Floats) -> Waits:
    """The merges that lost time to one of some groups of clients.

    Args:
        whose: each job's group, (n,).
        jobs: columns (n,), ``merge`` ascending: each job's merge, counted from 0; ``version``, ``start_s``,
            ``end_s``.
        parts: the seconds of each job's ``PARTS``, (n, 5).
    """
    merge, end_s = jobs["merge"], jobs["end_s"]
    if not len(merge):
        return Waits(merge, merge, end_s, parts, end_s, end_s)
    starts = np.flatnonzero(np.diff(merge, prepend=-1))
    last = np.lexsort((end_s, merge))[np.append(starts[1:], len(merge)) - 1]
    others = whose != whose[last][merge]
    count = np.add.reduceat(others.astype(np.int64), starts)
    waited_s = end_s[last] - np.maximum.reduceat(np.where(others, end_s, -np.inf), starts)
    found = np.flatnonzero((count > 0) & (waited_s > 0))
    means = np.add.reduceat(parts * others[:, None], starts)[found] / count[found, None]
    over = np.maximum(parts[last[found]] - means, 0.0)
    shares = over / over.sum(axis=1, keepdims=True)
    return Waits(
        version=np.maximum.reduceat(jobs["version"], starts)[found],
        who=whose[last[found]],
        lost_s=waited_s[found],
        parts_s=shares * waited_s[found, None],
        busy_s=np.add.reduceat(np.where(others, end_s - jobs["start_s"], 0.0), starts)[found],
        whole_s=((end_s - jobs["start_s"])[last] * count)[found],
    )


def _lost(found: Waits) -> dict[int, Lost]:
    """What merges lost to each group of clients; those that cost most first."""
    groups, at = np.unique(found.who, return_inverse=True)
    seconds = np.stack([found.lost_s, *found.parts_s.T, found.busy_s, found.whole_s])
    sums = np.stack([np.bincount(at, weights=one, minlength=len(groups)) for one in seconds], axis=1)
    merges = np.bincount(at, minlength=len(groups))
    by_group = {}
    for place in np.argsort(-sums[:, 0], kind="stable").tolist():
        *lost, busy, whole = sums[place].tolist()
        figures = (*lost, 1.0 - busy / whole)
        by_group[int(groups[place])] = Lost(int(merges[place]), *figures)
    return by_group


def _together(all_jobs: Jobs) -> Columns:
    """The jobs of merges that took those of one dispatch, ordered by merge; adds the column ``merge``."""
    jobs = _chosen(_columns(all_jobs), np.flatnonzero(np.isin(all_jobs.ending, _WAITED)))
    jobs = _chosen(jobs, np.lexsort((jobs["start_s"], jobs["place"])))
    begins = (np.diff(jobs["start_s"], prepend=-1.0) != 0) | (np.diff(jobs["place"], prepend=-1) != 0)
    dispatch = np.cumsum(begins) - 1
    merged = jobs["version"] >= 0
    versions = int(jobs["version"].max(initial=0)) + 1
    pairs = np.unique(dispatch[merged] * versions + jobs["version"][merged])
    sources, into = pairs // versions, pairs % versions
    once = (np.bincount(sources)[sources] == 1) & (np.bincount(into)[into] == 1)
    merge_of = np.full(int(begins.sum()), -1)
    merge_of[sources[once]] = np.arange(np.count_nonzero(once))
    # Of a job that was merged, the time at which it ended is the merge's.
    merged_s = np.full(len(merge_of), -np.inf)
    np.maximum.at(merged_s, dispatch[merged], jobs["ended_s"][merged])
    jobs["merge"] = merge_of[dispatch]
    return _chosen(jobs, (jobs["merge"] >= 0) & (jobs["end_s"] <= merged_s[dispatch]))


def _columns(jobs: Jobs) -> Columns:
    return {
        "client": jobs.client,
        "place": jobs.place,
        "version": jobs.into,
        "steps": jobs.steps,
        "worked": ~np.isnan(jobs.worked_s),
        "start_s": jobs.dispatched_s,
        "end_s": jobs.until_s,
        "ended_s": jobs.ended_s,
        "link_s": jobs.receive_s + jobs.transmit_s,
        "work_s": jobs.work_s,
    }


def _chosen(jobs: Columns, places: NDArray[Any]) -> Columns:
    return {name: column[places] for name, column in jobs.items()}


def _parts(
    jobs: Columns, full_speed_s: NDArray[np.float64], slowdown: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The seconds of each job's ``PARTS``, (n, 5); they add up to its time.

    Args:
        jobs: columns (n,).
        full_speed_s: each job's work at its device's full speed.
        slowdown: its client's.
    """
    work_s, link_s = jobs["work_s"], jobs["link_s"]
    full_s = done_s(full_speed_s, work_s, slowdown, worked=jobs["worked"])
    jitter_s = work_s - full_s * slowdown
    jitter_s[np.abs(jitter_s) <= _ROUNDING * work_s] = 0.0
    away_s = jobs["end_s"] - jobs["start_s"] - link_s - work_s
    away_s[np.abs(away_s) <= _ROUNDING * jobs["end_s"]] = 0.0
    return np.stack([link_s, full_s, full_s * (slowdown - 1.0), jitter_s, away_s], axis=1)


def planned_s(reader: Reader, place: Ints, kind: Ints, steps: Ints) -> Floats:
    """The seconds of jobs' whole work, (n,): their kinds' prices, by the steps that they took.

    Args:
        reader: the run.
        place: each job's exchange, its place in the run.
        kind: its client's kind.
        steps: its optimizer steps.
    """
    rows = reader.query(
        "SELECT place, kind, work_s, steps FROM prices JOIN exchanges USING (exchange) "
        "WHERE kind NOT IN (SELECT kind FROM refused_kinds)"
    )
    shape = [max((row[name] for row in rows), default=0) + 1 for name in ("place", "kind")]
    work_s, of_all = np.zeros(shape), np.zeros(shape)
    for row in rows:
        at = row["place"], row["kind"]
        work_s[at], of_all[at] = row["work_s"] or 0.0, row["steps"] or 0
    share = np.divide(steps, of_all[place, kind], out=np.ones(len(steps)), where=of_all[place, kind] > 0)
    priced_s: Floats = work_s[place, kind] * share
    return priced_s


def done_s(planned_s: Floats, busy_s: Floats, slowdown: Floats, *, worked: Bools) -> Floats:
    """The seconds at full speed of the work that jobs did, (n,).

    Nobody knows how far a job came whose work was broken off: at its client's usual speed, it is assumed.

    Args:
        planned_s: of their whole work.
        busy_s: how long their clients worked.
        slowdown: their clients'.
        worked: which were done with their work.
    """
    return np.where(worked, planned_s, np.minimum(planned_s, busy_s / slowdown))
