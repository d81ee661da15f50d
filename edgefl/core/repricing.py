"""What a run's jobs would have taken at other prices: of the same work, on other numbers.

Who did what stays as it was. Each stage of a job takes as much longer or shorter as its kind of client is
priced at it, and draws the power that it has there. Where a run is blind to time, these are the times of a
run at those prices: each exchange begins when the one before was merged, and is merged when its slowest job
arrives. Elsewhere jobs keep the times at which they began and ended, which other prices might have changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from edgefl.core.plan import Floats, Ints, Prices
from edgefl.core.price import Demand, PowerDraw, times


class Jobs(NamedTuple):
    """A run's jobs, (n,), in the order of their numbers.

    Attributes:
        client, kind: who did it.
        exchange: its place in the plan.
        version: the server's version that it began with.
        into_version: the one that it was merged into; 0 for none.
        dispatched_s, received_s, worked_s, arrived_s, ended_s: its stations; NaN for those not reached.
        receive_s, work_s, transmit_s: busy seconds by stage.
        full_power_s: of the work, see ``edgefl.core.event.JOB``.
        down_bytes, up_bytes: as far as they moved.
    """

    client: Ints
    kind: Ints
    exchange: Ints
    version: Ints
    into_version: Ints
    dispatched_s: Floats
    received_s: Floats
    worked_s: Floats
    arrived_s: Floats
    ended_s: Floats
    receive_s: Floats
    work_s: Floats
    transmit_s: Floats
    full_power_s: Floats
    down_bytes: Ints
    up_bytes: Ints

    @classmethod
    def of(cls, rows: np.ndarray, kinds: Ints) -> Jobs:
        """Jobs of rows of ``edgefl.core.event.JOB``, given the kind of each client."""
        given = {name: rows[name] for name in cls._fields if name != "kind"}
        given["into_version"] = np.maximum(rows["into_version"], 0)
        return cls(kind=kinds[rows["client"]], **given)


class Taken(NamedTuple):
    """What a run's jobs took, (n,) each; NaN where it is unknown.

    Attributes:
        stage_j: the joules of receiving, working and sending, with the tails that a job's row has; see
            ``edgefl.core.event.JOULES``.
        open_j: of the tails that they left open at the run's end.
        busy_s: the seconds of the stages.
    """

    stage_j: tuple[Floats, Floats, Floats]
    open_j: Floats
    busy_s: tuple[Floats, Floats, Floats]


class Repriced:
    """A run's jobs at other prices."""

    def __init__(
        self, jobs: Jobs, prices: Sequence[Prices], others: Sequence[Prices], *, blind: bool
    ) -> None:
        """Works out times and powers; what nothing bounds is NaN.

        Args:
            jobs: what was done.
            prices: the run's own, by exchange.
            others: those to take in their place.
            blind: whether the run is blind to time.
        """
        self._jobs, self._blind = jobs, blind
        before, after = _demands(prices, jobs), _demands(others, jobs)
        self._demand = after
        work = _factor(before, after, lambda one: one.work_s)
        self._full_power_s = jobs.full_power_s * work
        self._busy = (
            jobs.receive_s * _factor(before, after, lambda one: one.down_s),
            jobs.work_s * work,
            jobs.transmit_s * _factor(before, after, lambda one: one.up_s),
        )
        self._ends = self._merged() if blind else None
        self._stages = self._begun_and_ended()

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
        done = [_share(began, ended, until_s) for began, ended in self._stages]
        receive_s, work_s, transmit_s = (
            times(busy, share) for share, busy in zip(done, self._busy, strict=True)
        )
        # A transfer under way has moved less than its share, since it began with handshakes.
        down, up = self._jobs.down_bytes, self._jobs.up_bytes
        down = np.where(done[0] < 1, np.minimum(down, self._demand.moved_down(receive_s)), down)
        up = np.where(done[2] < 1, np.minimum(up, self._demand.moved_up(transmit_s)), up)
        powered_s = times(self._full_power_s, done[1])
        charges = self._demand.charges((receive_s, work_s, transmit_s), (down, up), powered_s)
        joules = sum(float(np.sum(part)) for charge in charges for part in charge)
        return joules + float(np.sum(self._tails_j(until_s)))

    def by_job(self, t_s: float) -> Taken:
        """What each job took in the whole run, each tail where the run charges it.

        Args:
            t_s: the run's end on its own clock.
        """
        then_s, jobs = self.seconds(), self._jobs
        charges = self._demand.charges(self._busy, (jobs.down_bytes, jobs.up_bytes), self._full_power_s)
        receive_j, work_j, transmit_j = (active_j + idle_j for active_j, idle_j in charges)
        earlier_j, between_j, open_j = self._tails_j(t_s if then_s is None else then_s)
        return Taken((receive_j + earlier_j, work_j + between_j, transmit_j), open_j, self._busy)

    def _merged(self) -> Floats:
        """When each version was merged: after the slowest of its jobs."""
        jobs = self._jobs
        longest = np.zeros(int(jobs.into_version.max(initial=0)) + 1)
        took_s = self._busy[0] + self._busy[1] + self._busy[2]
        with np.errstate(invalid="ignore"):
            np.maximum.at(longest, jobs.into_version, np.where(jobs.into_version > 0, took_s, 0.0))
        return np.cumsum(longest)

    def _begun_and_ended(self) -> list[tuple[Floats, Floats]]:
        """When each stage began and ended; NaN for one that did not begin."""
        jobs = self._jobs
        if self._ends is None:
            stations = (jobs.dispatched_s, jobs.received_s, jobs.worked_s)
            reached = (jobs.received_s, jobs.worked_s, jobs.arrived_s)
            ended = (np.where(np.isnan(one), jobs.ended_s, one) for one in reached)
            return list(zip(stations, ended, strict=True))
        at_s, found = self._ends[jobs.version], []
        for busy in self._busy:
            found.append((at_s, at_s + busy))
            at_s = at_s + busy
        return found

    def _tails_j(self, until_s: float) -> Floats:
        """The joules of radios' tails by the job that they are charged with, (3, n).

        Those before a job's first transfer, those between its two, and those that are open in the end. Each
        lasts until its client's next transfer begins.
        """
        transfers = self._stages[0], self._stages[2]
        moved = np.concatenate((self._jobs.receive_s > 0, self._jobs.transmit_s > 0))
        job = np.tile(np.arange(len(self._jobs.client)), 2)[moved]
        began, ended = (np.concatenate(each)[moved] for each in zip(*transfers, strict=True))
        order = np.lexsort((began, self._jobs.client[job]))
        job, began, ended = job[order], began[order], ended[order]
        client, following = self._jobs.client[job], np.full(len(order), np.inf)
        again = np.flatnonzero(client[1:] == client[:-1])
        following[again] = began[again + 1]
        left_s = np.minimum(following, until_s) - ended
        draw = PowerDraw(*(np.broadcast_to(one, self._jobs.client.shape)[job] for one in self._demand.draw))
        kind, charged = np.full(len(order), _OPEN), job.copy()
        kind[again] = np.where(job[again + 1] == job[again], _BETWEEN, _EARLIER)
        charged[again] = job[again + 1]
        joules = np.zeros((3, len(self._jobs.client)))
        joules[kind, charged] = draw.tail_j(~(left_s <= 0), left_s)
        return joules


_EARLIER, _BETWEEN, _OPEN = range(3)


def at_corners(jobs: Jobs, prices: Sequence[Prices], *, blind: bool) -> tuple[Repriced, Repriced]:
    """Jobs at the cheap and at the costly corner of their prices.

    Args:
        jobs: what was done.
        prices: the run's, by exchange.
        blind: whether the run is blind to time.
    """
    ends = zip(*(one.corners or (one, one) for one in prices), strict=True)
    cheap, costly = (Repriced(jobs, prices, end, blind=blind) for end in ends)
    return cheap, costly


def is_unbounded(prices: Prices) -> bool:
    """Whether some kind's work has no upper bound."""
    costly = prices.corners[1].work_s if prices.corners else prices.work_s
    return bool(np.any(np.isnan(costly) & ~np.isnan(prices.work_s)))


def _demands(prices: Sequence[Prices], jobs: Jobs) -> Demand:
    """What each job asked for."""
    mine = [np.flatnonzero(jobs.exchange == place) for place in range(len(prices))]
    rows = [one.demand(jobs.kind[places]) for one, places in zip(prices, mine, strict=True)]
    order = np.argsort(np.concatenate(mine))

    def joined(parts: Sequence[Floats]) -> Floats:
        found: Floats = np.concatenate(parts)[order]
        return found

    draw = PowerDraw._make(map(joined, zip(*(one.draw for one in rows), strict=True)))
    quantities = map(joined, zip(*(one[:-1] for one in rows), strict=True))
    return Demand._make([*quantities, draw])


def _factor(before: Demand, after: Demand, figure: Callable[[Demand], Floats]) -> Floats:
    """How much longer something takes; 1 where it took no time."""
    one, two = figure(before), figure(after)
    found: Floats = np.divide(two, one, out=np.ones_like(one), where=one > 0)
    return found


def _share(began: Floats, ended: Floats, until_s: float) -> Floats:
    """The share of a stage that was done until then; 0 of one that did not begin."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(ended <= until_s, 1.0, (until_s - began) / (ended - began))
    return np.where(began <= until_s, np.clip(share, 0.0, 1.0), 0.0)
