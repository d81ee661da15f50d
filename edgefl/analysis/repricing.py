"""What a run's jobs would have taken at other prices: of the same work, on other numbers.

Who did what stays as it was. Each stage of a job takes as much longer or shorter as its kind of client is
priced at it, and draws the power that it has there. Where a run is blind to time, these are the times of a
run at those prices: each exchange begins when the one before was merged, and is merged when its slowest job
arrives. Elsewhere jobs keep the times at which they began and ended, which other prices might have changed.

On links that are shared or change, a transfer takes as much more or less time as it would alone on its
client's link; what others, or the moment, added to that stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgefl.core.arrays import Bools, Floats, Ints
from edgefl.core.plan import Prices
from edgefl.core.price import Demand, times

_COLUMNS = (
    "client", "exchange", "version", "dispatched_s", "received_s", "worked_s", "arrived_s", "ended_s",
    "receive_s", "work_s", "transmit_s", "full_power_s", "down_bytes", "up_bytes",
)  # fmt: skip
_CHUNK = 1 << 16


class Columns:
    """Rows of a run's long table, (n,): each column as an attribute, or by its name."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        vars(self).update(columns)

    def __getattr__(self, name: str) -> Any:
        """None but those that there are."""
        raise AttributeError(name)

    def __getitem__(self, which: str | slice | Ints | Bools) -> Any:
        """A column, or some of the rows."""
        if isinstance(which, str):
            return vars(self)[which]
        return Columns({name: column[which] for name, column in vars(self).items()})

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))


def priceable(rows: Any, kinds: Ints) -> Columns:
    """A run's jobs as ``Repriced`` takes them, in the order of their numbers.

    They have some columns of ``core.event.JOB``; the ``kind`` of their client; ``into_version``, 0 for none;
    ``earlier``, the place of the job before, of those with a transfer, of the same client, -1 for none; and
    whether each is the ``last`` of them. They are made of rows of ``JOB``, or its columns, and each client's
    kind.
    """
    client, moved = rows["client"], (rows["receive_s"] > 0) | (rows["transmit_s"] > 0)
    order = np.flatnonzero(moved)
    order = order[np.argsort(client[order], kind="stable")]
    again = client[order[1:]] == client[order[:-1]]
    earlier = np.full(len(client), -1, dtype=np.int64)
    earlier[order[1:][again]] = order[:-1][again]
    moved[order[:-1][again]] = False
    more = {"kind": kinds[client], "into_version": np.maximum(rows["into_version"], 0)}
    return Columns({**{name: rows[name] for name in _COLUMNS}, **more, "earlier": earlier, "last": moved})


def chunks(jobs: Columns) -> Iterator[slice]:
    """The places of all jobs, so many at a time that memory does not grow with a run."""
    for first in range(0, len(jobs), _CHUNK):
        yield slice(first, min(first + _CHUNK, len(jobs)))


class Taken(NamedTuple):
    """What some of a run's jobs took, (n,) each; NaN where it is unknown.

    Attributes:
        stage_j: the joules of receiving, working and sending.
        tail_j: of the radio's tails before their first transfer, between their two, and after the last one
            if it is their client's last in the run.
        busy_s: the seconds of the stages.
    """

    stage_j: tuple[Floats, Floats, Floats]
    tail_j: tuple[Floats, Floats, Floats]
    busy_s: tuple[Floats, Floats, Floats]


class _Stages(NamedTuple):
    """Some jobs at other prices.

    Attributes:
        demand: what they ask for there.
        busy_s, full_power_s: as of the jobs, there.
        began_s, ended_s: of each stage; NaN for one that did not begin.
    """

    jobs: Columns
    demand: Demand
    busy_s: tuple[Floats, Floats, Floats]
    full_power_s: Floats
    began_s: tuple[Floats, Floats, Floats]
    ended_s: tuple[Floats, Floats, Floats]

    def first_s(self) -> Floats:
        """When the first transfer began."""
        return np.where(self.jobs.receive_s > 0, self.began_s[0], self.began_s[2])

    def tail_j(self, since_s: Floats, until_s: Floats | float, opened: Bools) -> Floats:
        """The joules of their radios' tails, where they were open for some time."""
        left_s = until_s - since_s
        joules: Floats = self.demand.tail_j(opened & ~(left_s <= 0), left_s)
        return joules

    def last_j(self, until_s: Floats | float) -> Floats:
        """The joules of the tail after the last transfer."""
        sends = self.jobs.transmit_s > 0
        since_s = np.where(sends, self.ended_s[2], self.ended_s[0])
        return self.tail_j(since_s, until_s, sends | (self.jobs.receive_s > 0))


class _Chunk(NamedTuple):
    """Some jobs; the places among them of those whose clients had one before, and these earlier ones."""

    some: _Stages
    after: Ints
    earlier: _Stages


class Repriced:
    """A run's jobs at other prices."""

    def __init__(
        self,
        jobs: Columns,
        prices: Sequence[Prices],
        others: Sequence[Prices],
        *,
        blind: bool,
        shared: bool = False,
    ) -> None:
        """Takes the run's own prices, and the others, by exchange; what nothing bounds is NaN.

        Args:
            blind: whether the run is blind to time.
            shared: whether links are shared or change.
        """
        self._jobs, self._prices, self._others, self._shared = jobs, prices, others, shared
        self._ends = self._merged() if blind else None
        self._kept: tuple[slice, _Chunk] | None = None

    def seconds(self, version: int | None = None) -> float | None:
        """When a version of the server was merged, or the last one; None where times stand as they are."""
        return None if self._ends is None else float(self._ends[-1 if version is None else version])

    def joules(self, t_s: float, version: int | None = None) -> float:
        """The energy of all clients; NaN where some is unknown.

        Args:
            t_s: until this time of the run's own clock.
            version: the server's version then; None for the end of the run.
        """
        then_s = self.seconds(version)
        until_s = t_s if then_s is None else then_s
        if math.isnan(until_s):
            return math.nan
        return math.fsum(self._until(self._chunk(places), until_s) for places in chunks(self._jobs))

    def _until(self, chunk: _Chunk, until_s: float) -> float:
        """The energy of some jobs until a time, stages under way as far as they got."""
        some = chunk.some
        done = [
            _so_much(began, ended, until_s) for began, ended in zip(some.began_s, some.ended_s, strict=True)
        ]
        receive_s, work_s, transmit_s = (
            times(busy, share) for share, busy in zip(done, some.busy_s, strict=True)
        )
        # A transfer under way has moved less than its share, since it began with handshakes.
        down, up, demand = some.jobs.down_bytes, some.jobs.up_bytes, some.demand
        received, sent = demand.moved(receive_s, transmit_s)
        down = np.where(done[0] < 1, self._so_far(down, done[0], received), down)
        up = np.where(done[2] < 1, self._so_far(up, done[2], sent), up)
        powered_s = times(some.full_power_s, done[1])
        charges = demand.charges((receive_s, work_s, transmit_s), (down, up), powered_s)
        parts = [part for stage in zip(*charges, strict=True) for part in stage]
        return sum(float(np.sum(part)) for part in (*parts, *_tails_j(chunk, until_s)))

    def by_job(self, t_s: float) -> Iterator[tuple[slice, Taken]]:
        """What each job took in the whole run, until its end on its own clock; some jobs at a time."""
        then_s = self.seconds()
        for places in chunks(self._jobs):
            chunk = self._chunk(places)
            some = chunk.some
            moved = some.jobs.down_bytes, some.jobs.up_bytes
            charges = some.demand.charges(some.busy_s, moved, some.full_power_s)
            receive_j, work_j, transmit_j = map(np.add, *charges)
            tails_j = _tails_j(chunk, t_s if then_s is None else then_s)
            yield places, Taken((receive_j, work_j, transmit_j), tails_j, some.busy_s)

    def _chunk(self, places: slice) -> _Chunk:
        """Some of the jobs; the last are kept, since most runs have no more and are asked for many times."""
        if self._kept is None or self._kept[0] != places:
            some = self._at(places)
            after = np.flatnonzero(some.jobs.earlier >= 0)
            self._kept = places, _Chunk(some, after, self._at(some.jobs.earlier[after]))
        return self._kept[1]

    def _at(self, places: slice | Ints) -> _Stages:
        jobs, demand, busy_s, full_power_s = self._worked(places)
        if self._ends is None:
            began_s = jobs.dispatched_s, jobs.received_s, jobs.worked_s
            reached = jobs.received_s, jobs.worked_s, jobs.arrived_s
            received_s, worked_s, arrived_s = (np.where(np.isnan(one), jobs.ended_s, one) for one in reached)
        else:
            at_s = self._ends[jobs.version]
            received_s = at_s + busy_s[0]
            worked_s = received_s + busy_s[1]
            began_s, arrived_s = (at_s, received_s, worked_s), worked_s + busy_s[2]
        return _Stages(jobs, demand, busy_s, full_power_s, began_s, (received_s, worked_s, arrived_s))

    def _worked(self, places: slice | Ints) -> tuple[Columns, Demand, tuple[Floats, Floats, Floats], Floats]:
        """Some of the jobs, what they ask for there, and how long they are busy and at full power."""
        jobs = self._jobs[places]
        before, after = _demands(self._prices, jobs), _demands(self._others, jobs)
        work = _factor(before.work_s, after.work_s)
        down = jobs.receive_s, _factor(before.down_bytes, jobs.down_bytes), before.down_s, after.down_s
        up = jobs.transmit_s, _factor(before.up_bytes, jobs.up_bytes), before.up_s, after.up_s
        receive_s, transmit_s = self._transferred_s(*down), self._transferred_s(*up)
        return jobs, after, (receive_s, jobs.work_s * work, transmit_s), jobs.full_power_s * work

    def _transferred_s(self, busy_s: Floats, sends: Floats, alone_s: Floats, other_s: Floats) -> Floats:
        """How long transfers take at the other prices, given how many times their payload was sent."""
        if self._shared:
            return np.maximum(busy_s + sends * (other_s - alone_s), 0.0)
        return busy_s * _factor(alone_s, other_s)

    def _so_far(self, moved_bytes: Ints, done: Floats, alone_bytes: Ints) -> Any:
        """The bytes that transfers under way have moved at most, given what they would have moved alone."""
        return np.minimum(moved_bytes * done if self._shared else moved_bytes, alone_bytes)

    def took_s(self) -> Floats:
        """How long each job's client was busy with it, all stages together, (n,)."""
        taken = [self._worked(places)[2] for places in chunks(self._jobs)]
        found: Floats = np.concatenate([sum(busy_s) for busy_s in taken]) if taken else np.zeros(0)
        return found

    def _merged(self) -> Floats:
        """When each version was merged: after the slowest of its jobs."""
        return np.cumsum(slowest_s(self._jobs.into_version, self.took_s()))


def _tails_j(chunk: _Chunk, until_s: float) -> tuple[Floats, Floats, Floats]:
    """The joules of radios' tails by the job that they are charged with.

    Those before a job's first transfer, those between its two, and those that are open in the end. Each
    lasts until its client's next transfer begins.
    """
    some, after = chunk.some, chunk.after
    jobs, earlier_j = some.jobs, np.zeros(len(some.jobs.client))
    earlier_j[after] = chunk.earlier.last_j(np.minimum(some.first_s()[after], until_s))
    both = (jobs.receive_s > 0) & (jobs.transmit_s > 0)
    between_j = some.tail_j(some.ended_s[0], np.minimum(some.began_s[2], until_s), both)
    return earlier_j, between_j, np.where(jobs.last, some.last_j(until_s), 0.0)


def slowest_s(into_version: Ints, took_s: Floats) -> Floats:
    """How long the slowest of each version's jobs took, (versions,); 0 for a version without any.

    Arguments are of each job, (n,); ``into_version`` is 0 for one that was not merged.
    """
    longest = np.zeros(int(into_version.max(initial=0)) + 1)
    with np.errstate(invalid="ignore"):
        np.maximum.at(longest, into_version, np.where(into_version > 0, took_s, 0.0))
    return longest


def is_unbounded(prices: Prices) -> bool:
    """Whether some kind's work has no upper bound."""
    costly = prices.corners[1].work_s if prices.corners else prices.work_s
    return bool(np.any(np.isnan(costly) & ~np.isnan(prices.work_s)))


def _demands(prices: Sequence[Prices], jobs: Columns) -> Demand:
    if len(prices) == 1:
        return prices[0].demand(jobs.kind)
    mine = [np.flatnonzero(jobs.exchange == place) for place in range(len(prices))]
    rows = [one.demand(jobs.kind[places]) for one, places in zip(prices, mine, strict=True)]
    order = np.argsort(np.concatenate(mine))

    def joined(parts: Sequence[Floats]) -> Floats:
        found: Floats = np.concatenate(parts)[order]
        return found

    return Demand._make(map(joined, zip(*rows, strict=True)))


def _factor(before: Floats | Ints, after: Floats | Ints) -> Floats:
    """How many times as much something is; 1 where it was nothing."""
    found = np.ones(len(before))
    np.divide(after, before, out=found, where=before > 0)
    return found


def _so_much(began: Floats, ended: Floats, until_s: float) -> Floats:
    """The share of a stage that was done until then; 0 of one that did not begin."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(ended <= until_s, 1.0, (until_s - began) / (ended - began))
    return np.where(began <= until_s, np.clip(share, 0.0, 1.0), 0.0)
