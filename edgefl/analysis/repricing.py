"""What a run's jobs would have taken at other prices: of the same work, on other numbers.

Who did what stays as it was. Each stage of a job takes as much longer or shorter as its kind of client is
priced at it, and draws the power that it has there. Where a run is blind to time, these are the times of a
run at those prices: each exchange begins when the one before was merged, and is merged when its slowest job
arrives. Elsewhere jobs keep the times at which they began and ended, which other prices might have changed.

On links that are shared or change, a transfer takes as much more or less time as it would alone on its
client's link; what others, or the moment, added to that stays.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgefl.core.arrays import Bools, Floats, Ints
from edgefl.core.plan import Prices
from edgefl.core.price import Demand, times

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


def priceable(jobs: Columns, kinds: Ints) -> Columns:
    """A run's jobs, in the order of their numbers, as ``Repriced`` takes them, given each client's kind.

    They have the ``kind`` of their client too, and ``earlier``: of those with a transfer, the place of the
    one before of the same client, -1 for none.
    """
    order = np.flatnonzero((jobs.receive_s > 0) | (jobs.transmit_s > 0))
    order = order[np.argsort(jobs.client[order], kind="stable")]
    again = jobs.client[order[1:]] == jobs.client[order[:-1]]
    earlier = np.full(len(jobs), -1, dtype=np.int64)
    earlier[order[1:][again]] = order[:-1][again]
    return Columns({**vars(jobs), "kind": kinds[jobs.client], "earlier": earlier})


class Taken(NamedTuple):
    """What a run's jobs took, (n,) each; NaN where it is unknown.

    Attributes:
        stage_j: the joules of receiving, working and sending.
        tail_j: of the radio's tails before their first transfer, between their two, and after the last one
            if it is their client's last in the run.
        busy_s: the seconds of the stages.
    """

    stage_j: tuple[Floats, Floats, Floats]
    tail_j: tuple[Floats, Floats, Floats]
    busy_s: tuple[Floats, Floats, Floats]


class Repriced:
    """A run's jobs at other prices."""

    def __init__(
        self,
        jobs: Columns,
        demands: Sequence[Demand],
        others: Sequence[Demand],
        *,
        blind: bool,
        shared: bool = False,
    ) -> None:
        """Takes the run's own demands, and the others, by exchange; what nothing bounds is NaN.

        Args:
            blind: whether the run is blind to time.
            shared: whether links are shared or change.
        """
        self._jobs, self._shared = jobs, shared
        before, self._others = _joined(demands), _joined(others)
        # Of each job, the place of what its kind of client is asked for in its exchange.
        self._place = jobs.exchange * len(demands[0].work_s) + jobs.kind
        work = _factor(before.work_s, self._others.work_s)[self._place]
        down = jobs.receive_s, jobs.down_bytes, before.down_bytes, before.down_s, self._others.down_s
        up = jobs.transmit_s, jobs.up_bytes, before.up_bytes, before.up_s, self._others.up_s
        receive_s, transmit_s = self._transferred_s(*down), self._transferred_s(*up)
        work_s: Floats = jobs.work_s * work
        self._busy_s, self._full_power_s = (receive_s, work_s, transmit_s), jobs.full_power_s * work
        # When versions were merged, each after the slowest of its jobs; when stages began and ended, NaN for
        # one that did not begin.
        self._ends = None
        if blind:
            longest_s, merged = np.zeros(jobs.into_version.max(initial=0) + 1), jobs.into_version > 0
            with np.errstate(invalid="ignore"):
                np.maximum.at(longest_s, jobs.into_version[merged], (receive_s + work_s + transmit_s)[merged])
            self._ends = np.cumsum(longest_s)
            at_s = self._ends[jobs.version]
            received_s, worked_s = at_s + receive_s, at_s + receive_s + work_s
            self._began_s = at_s, received_s, worked_s
            self._ended_s = [received_s, worked_s, worked_s + transmit_s]
        else:
            self._began_s = jobs.dispatched_s, jobs.received_s, jobs.worked_s
            reached = jobs.received_s, jobs.worked_s, jobs.arrived_s
            self._ended_s = [np.where(np.isnan(one), jobs.ended_s, one) for one in reached]
        # When each job's client begins its next transfer.
        after = np.flatnonzero(jobs.earlier >= 0)
        first_s = np.where(jobs.receive_s > 0, self._began_s[0], self._began_s[2])
        self._next_s = np.full(len(jobs), np.inf)
        self._next_s[jobs.earlier[after]] = first_s[after]

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
        return math.fsum(self._until(some, until_s) for some in self._chunks())

    def _chunks(self) -> Iterator[slice]:
        """The places of all jobs, so many at a time that what is reckoned of them takes little memory."""
        return (slice(first, first + _CHUNK) for first in range(0, max(1, len(self._jobs)), _CHUNK))

    def _until(self, some: slice, until_s: float) -> float:
        """The energy of some jobs until a time, stages under way as far as they got."""
        stages = zip(self._began_s, self._ended_s, strict=True)
        done = [_so_much(began_s[some], ended_s[some], until_s) for began_s, ended_s in stages]
        receive_s, work_s, transmit_s = (
            times(busy_s[some], share) for busy_s, share in zip(self._busy_s, done, strict=True)
        )
        # A transfer under way has moved less than its share, since it began with handshakes.
        demand, down, up = (
            self._others.taken(self._place[some]),
            self._jobs.down_bytes[some],
            self._jobs.up_bytes[some],
        )
        received, sent = demand.moved(receive_s, transmit_s)
        down = np.where(done[0] < 1, self._so_far(down, done[0], received), down)
        up = np.where(done[2] < 1, self._so_far(up, done[2], sent), up)
        powered_s = times(self._full_power_s[some], done[1])
        charges = demand.charges((receive_s, work_s, transmit_s), (down, up), powered_s)
        parts = [part for stage in zip(*charges, strict=True) for part in stage]
        return sum(float(np.sum(part)) for part in (*parts, *self._tails_j(demand, some, until_s)))

    def taken(self, t_s: float) -> Taken:
        """What each job took in the whole run, until its end on its own clock."""
        then_s, parts = self.seconds(), []
        for some in self._chunks():
            demand, (receive_s, work_s, transmit_s) = (
                self._others.taken(self._place[some]),
                (one[some] for one in self._busy_s),
            )
            moved = self._jobs.down_bytes[some], self._jobs.up_bytes[some]
            charges = demand.charges((receive_s, work_s, transmit_s), moved, self._full_power_s[some])
            tails_j = self._tails_j(demand, some, t_s if then_s is None else then_s)
            parts.append([*map(np.add, *charges), *tails_j])
        receive_j, work_j, transmit_j, between_j, last_j = map(np.concatenate, zip(*parts, strict=True))
        # The tail that a transfer ends is the job's that begins it.
        earlier_j, after = np.zeros(len(self._jobs)), np.flatnonzero(self._jobs.earlier >= 0)
        earlier = self._jobs.earlier[after]
        earlier_j[after], last_j[earlier] = last_j[earlier], 0.0
        return Taken((receive_j, work_j, transmit_j), (earlier_j, between_j, last_j), self._busy_s)

    def _transferred_s(
        self, busy_s: Floats, moved: Ints, payload: Ints, alone_s: Floats, other_s: Floats
    ) -> Floats:
        """How long transfers take at the other prices; what is not the jobs' own is by ``_place``."""
        if self._shared:
            # As often as their payload was sent.
            sends = _factor(payload[self._place], moved)
            busy_s = np.maximum(busy_s + sends * (other_s - alone_s)[self._place], 0.0)
        else:
            busy_s = busy_s * _factor(alone_s, other_s)[self._place]
        return busy_s

    def _so_far(self, moved_bytes: Ints, done: Floats, alone_bytes: Ints) -> Any:
        """The bytes that transfers under way have moved at most, given what they would have moved alone."""
        return np.minimum(moved_bytes * done if self._shared else moved_bytes, alone_bytes)

    def _tails_j(self, demand: Demand, some: slice, until_s: float) -> tuple[Floats, Floats]:
        """The joules of some jobs' radios' tails: between their transfers, and after the last one.

        Each lasts until its client's next transfer begins.
        """
        receives, sends = self._jobs.receive_s[some] > 0, self._jobs.transmit_s[some] > 0
        received_s, sent_s = self._ended_s[0][some], self._ended_s[2][some]

        def tail_j(since_s: Floats, next_s: Floats, opened: Bools) -> Floats:
            left_s = np.minimum(next_s[some], until_s) - since_s
            joules: Floats = demand.tail_j(opened & ~(left_s <= 0), left_s)
            return joules

        last_j = tail_j(np.where(sends, sent_s, received_s), self._next_s, receives | sends)
        return tail_j(received_s, self._began_s[2], receives & sends), last_j


def is_unbounded(prices: Prices) -> bool:
    """Whether some kind's work has no upper bound."""
    work_s = prices.demand.work_s
    costly_s = prices.corners[1].work_s if prices.corners else work_s
    return bool(np.any(np.isnan(costly_s) & ~np.isnan(work_s)))


def _joined(demands: Sequence[Demand]) -> Demand:
    """What jobs of all kinds of clients ask for, those of one exchange after another's."""
    return Demand._make(map(np.concatenate, zip(*demands, strict=True)))


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
