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
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgefl.core.documents import INLINE
from edgefl.core.event import Kind
from edgefl.store import Reader

PARTS = ("link", "compute", "slowdown", "jitter", "away")

# Jobs whose end a merge may have waited for.
_SQL = f"""
SELECT client, place, IFNULL(into_version, -1), steps, worked_s IS NOT NULL, dispatched_s,
  IFNULL(arrived_s, ended_s), ended_s, receive_s + transmit_s, work_s
FROM jobs JOIN exchanges USING (exchange) WHERE ending IN ('{Kind.MERGED}', '{Kind.LOST}')
"""  # noqa: S608 - our own words
_INTEGERS = ("client", "place", "version", "steps", "worked")
_SECONDS = ("start_s", "end_s", "ended_s", "link_s", "work_s")
_COLUMNS: dict[str, type[np.generic]] = {
    **dict.fromkeys(_INTEGERS, np.int64),
    **dict.fromkeys(_SECONDS, np.float64),
}
Columns: TypeAlias = dict[str, NDArray[Any]]

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


def waited(reader: Reader) -> tuple[list[WaitedClient], list[WaitedDevice]]:
    """The clients and the devices that a run waited for, those that cost most first."""
    fleet = reader.arrays(
        "SELECT kind, slowdown FROM fleet ORDER BY client", kind=np.int64, slowdown=np.float64
    )
    of_kind = {row["kind"]: row["device"] for row in reader.rows("kinds")}
    names = sorted(set(of_kind.values()))
    place_of = np.zeros(max(of_kind, default=0) + 1, dtype=np.int64)
    place_of[list(of_kind)] = [names.index(name) for name in of_kind.values()]
    device = place_of[fleet["kind"]]
    jobs = _together(reader.arrays(_SQL, **_COLUMNS))
    parts = _parts(jobs, _full_speed_s(reader, jobs, fleet["kind"]), fleet["slowdown"][jobs["client"]])
    clients = [
        WaitedClient(client, names[device[client]], float(fleet["slowdown"][client]), lost)
        for client, lost in lost_to(jobs["client"], jobs, parts).items()
    ]
    numbers = np.bincount(device, minlength=len(names))
    devices = [
        WaitedDevice(names[place], int(numbers[place]), lost)
        for place, lost in lost_to(device[jobs["client"]], jobs, parts).items()
    ]
    return clients, devices


def lost_to(whose: NDArray[np.int64], jobs: Columns, parts: NDArray[np.float64]) -> dict[int, Lost]:
    """What merges lost to each of some groups of clients; those that cost most first.

    Args:
        whose: each job's group, (n,).
        jobs: columns (n,), ``merge`` ascending: each job's merge, counted from 0; ``start_s``, ``end_s``.
        parts: the seconds of each job's ``PARTS``, (n, 5).
    """
    merge, end_s = jobs["merge"], jobs["end_s"]
    if not len(merge):
        return {}
    starts = np.flatnonzero(np.diff(merge, prepend=-1))
    last = np.lexsort((end_s, merge))[np.append(starts[1:], len(merge)) - 1]
    others = whose != whose[last][merge]
    count = np.add.reduceat(others.astype(np.int64), starts)
    waited_s = end_s[last] - np.maximum.reduceat(np.where(others, end_s, -np.inf), starts)
    waits = np.flatnonzero((count > 0) & (waited_s > 0))
    means = np.add.reduceat(parts * others[:, None], starts)[waits] / count[waits, None]
    over = np.maximum(parts[last[waits]] - means, 0.0)
    shares = over / over.sum(axis=1, keepdims=True)
    lost_s = shares * waited_s[waits, None]
    busy_s = np.add.reduceat(np.where(others, end_s - jobs["start_s"], 0.0), starts)[waits]
    whole_s = ((end_s - jobs["start_s"])[last] * count)[waits]
    who, at = np.unique(whose[last[waits]], return_inverse=True)

    seconds = np.stack([waited_s[waits], *lost_s.T, busy_s, whole_s])
    sums = np.stack([np.bincount(at, weights=one, minlength=len(who)) for one in seconds], axis=1)
    merges = np.bincount(at, minlength=len(who))
    found = {}
    for place in np.argsort(-sums[:, 0], kind="stable").tolist():
        *lost, busy, whole = sums[place].tolist()
        figures = (*lost, 1.0 - busy / whole)
        found[int(who[place])] = Lost(int(merges[place]), *figures)
    return found


def _together(jobs: Columns) -> Columns:
    """The jobs of merges that took those of one dispatch, ordered by merge; adds the column ``merge``."""
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
    # Nobody knows how far a job came whose work was broken off: at the client's usual speed, it is assumed.
    full_s = np.where(jobs["worked"] == 1, full_speed_s, np.minimum(full_speed_s, work_s / slowdown))
    jitter_s = work_s - full_s * slowdown
    jitter_s[np.abs(jitter_s) <= _ROUNDING * work_s] = 0.0
    away_s = jobs["end_s"] - jobs["start_s"] - link_s - work_s
    away_s[np.abs(away_s) <= _ROUNDING * jobs["end_s"]] = 0.0
    return np.stack([link_s, full_s, full_s * (slowdown - 1.0), jitter_s, away_s], axis=1)


def _full_speed_s(reader: Reader, jobs: Columns, kinds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Each job's work at its device's full speed: its kind's price, by the steps that it took."""
    rows = reader.query(
        "SELECT place, kind, work_s, steps FROM prices JOIN exchanges USING (exchange) "
        "WHERE kind NOT IN (SELECT kind FROM refused_kinds)"
    )
    shape = max((row["place"] for row in rows), default=0) + 1, int(kinds.max(initial=0)) + 1
    work_s, steps = np.zeros(shape), np.zeros(shape)
    for row in rows:
        at = row["place"], row["kind"]
        work_s[at], steps[at] = row["work_s"] or 0.0, row["steps"] or 0
    at = jobs["place"], kinds[jobs["client"]]
    share = np.divide(jobs["steps"], steps[at], out=np.ones(len(jobs["steps"])), where=steps[at] > 0)
    priced_s: NDArray[np.float64] = work_s[at] * share
    return priced_s
