"""A job's life: one client receives, works and sends, and is broken off wherever it is.

``Job.life`` is a SimPy process. It ends when the upload has arrived, or by an ``Interrupt`` whose cause says
how the job ends: the server discards it, its client leaves or crashes, or it is given up. What a stage has
spent by then is charged there and then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import simpy

from edgefl.core.event import ENDINGS, JOB, JOULES, Kind
from edgefl.core.price import Demand
from edgefl.world.clock import At, Lost, Process
from edgefl.world.pace import States

if TYPE_CHECKING:
    from edgefl.world.world import World

MERGED, LATE, LOST, CUT = (ENDINGS.index(kind) for kind in (Kind.MERGED, Kind.LATE, Kind.LOST, Kind.CUT))
GONE = LOST, 0
"""Why a job ends that is lost on its own: its ending, and the server's turn, of which there is none."""
DOWN, UP, WORK = 0, 1, 2
"""A job's stages; the first two are the directions of its transfers."""

_INF = math.inf
# A rounding error below a whole number of optimizer steps, or of uploads, counts as it.
_ROUNDING = 1e-9


class StageProgress(NamedTuple):
    """How far a stage goes.

    Attributes:
        t_s: when it ended, or was looked at; infinite if its client is away for ever.
        done_s: how much of it was done, in seconds at full speed.
        busy_s: for how long the client was at it.
        power_s: as many seconds at full power take as much energy above idle.
        heat: the states of the client's speeds then.
    """

    t_s: float
    done_s: float
    busy_s: float
    power_s: float
    heat: States


_MORE = (
    ("kind", np.int64), ("next_s", np.float64), ("tail_since_s", np.float64),
)  # fmt: skip
LIVE = np.dtype([*((name, JOB[name]) for name in JOB.names or ()), *_MORE])
"""``JOB``, and what its energy depends on besides.

Its client's kind; when the client is dispatched again, infinite while it is not; and since when a tail of
the client's radio was open at the dispatch, minus infinity for none.
"""

_row = attrgetter(*(LIVE.names or ()))


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """One client's work in one exchange; its attributes say at any time what it has done and spent.

    Those of ``LIVE`` but its energies, which are reckoned for many jobs at once, and:

    Attributes:
        price: what it asks for, as plain numbers.
        process: SimPy's; an event that happens when the job has arrived or ended under way.
        stage, began_s: what it does, and since when.
        amount_s: its work at full speed.
        sends: how often its upload is sent.
        given_up: whether the last one is one too many that arrives with errors.
        stays_s: until when its client, which is there, stays at least.
        lost_s: when it is lost if it is still under way, as far as is known.
        crashes_at: the share of its work after which its device crashes; infinite for never.
        finish_by: when its upload is due; None if nobody asks.
        heat: the states of its client's speeds when the stage began.
        battery: its client's at the dispatch, where availability depends on it.
        carriage: what links that are shared or change keep of its transfers.
        watches: what happens at a time unless the job is over by then.
    """

    world: World
    price: Demand
    job: int
    client: int
    kind: int
    exchange: int
    round: int
    version: int
    nth: int
    steps: int
    dispatched_turn: int
    dispatched_s: float
    tail_since_s: float
    amount_s: float
    sends: int
    given_up: bool
    stays_s: float
    lost_s: float
    crashes_at: float
    finish_by: float | None
    heat: States
    battery: np.ndarray | None
    ending: int = 0
    into_version: int = -1
    ended_turn: int = 0
    down_bytes: int = 0
    up_bytes: int = 0
    flops: int = 0
    received_s: float = math.nan
    worked_s: float = math.nan
    arrived_s: float = math.nan
    ended_s: float = math.nan
    receive_s: float = 0.0
    work_s: float = 0.0
    transmit_s: float = 0.0
    full_power_s: float = 0.0
    next_s: float = math.inf
    stage: int = DOWN
    began_s: float = math.nan
    carriage: Any = None
    watches: list[simpy.Event] = field(default_factory=list)
    process: simpy.Process = field(init=False)

    @property
    def open(self) -> bool:
        return not self.ending

    @property
    def arrived(self) -> bool:
        """Whether it waits at the server."""
        return not (self.ending or math.isnan(self.arrived_s))

    @property
    def in_flight(self) -> bool:
        return self.process.is_alive

    def life(self) -> Process:
        env, carry = self.world.env, self.world.links.carry
        try:
            yield from carry(self, DOWN)
            self.received_s = env.now
            yield from self._work()
            self.worked_s = env.now
            yield from carry(self, UP)
            self.arrived_s = env.now
        except simpy.Interrupt as interrupt:
            self.charge_until(env.now)
            self.ending, self.ended_turn = cast("tuple[int, int]", interrupt.cause)
        self.world.home(self)

    def charge_until(self, now_s: float) -> None:
        """Charges what the stage in progress has spent until now."""
        if self.stage == WORK:
            end = self.goes(self.began_s, self.amount_s, working=True, until_s=now_s)
            self.work_s, self.full_power_s, self.heat = end.busy_s, end.power_s, end.heat
            # Work without a length is done as soon as it begins.
            self.flops = int(self.price.flops * (end.done_s / self.amount_s if self.amount_s > 0 else 1.0))
        else:
            self.world.links.charge_until(self, now_s)

    def as_if_ended(self, now_s: float) -> Job:
        """A copy, as if the job were broken off now."""
        other = copy(self)
        other.ended_s = now_s
        # Nothing is spent before the first stage has begun.
        if self.in_flight and not math.isnan(self.began_s):
            other.charge_until(now_s)
        return other

    def charge(self, way: int, seconds: float, moved: int) -> None:
        """Keeps what a transfer, or a part of one, took."""
        if way == DOWN:
            self.receive_s, self.down_bytes = seconds, moved
        else:
            self.transmit_s, self.up_bytes = seconds, moved

    def moved(self, way: int, busy_s: float) -> int:
        """The bytes of transfers that were held up by absences alone, after some busy seconds."""
        price = self.price
        if way == DOWN:
            return _moved(busy_s, price.down_delay_s, price.down_bps, price.down_bytes)
        sent = math.floor(busy_s / price.up_s + _ROUNDING) if price.up_s > 0 else 0
        rest_s = busy_s - sent * price.up_s
        return sent * int(price.up_bytes) + _moved(rest_s, price.up_delay_s, price.up_bps, price.up_bytes)

    def check_in_vain(self, t_s: float) -> None:
        """Loses an upload that arrives with errors once too often, or from a client that is away then."""
        if self.given_up or self.world.in_vain(self, t_s):
            raise simpy.Interrupt(GONE)

    def begin(self, stage: int) -> None:
        self.stage, self.began_s = stage, self.world.env.now

    def _work(self) -> Process:
        """Trains at the device's changing speed; fewer steps if the server wants the upload by a time."""
        self.begin(WORK)
        start_s = self.began_s
        if self.finish_by is not None:
            self._shorten(self.finish_by - self.price.up_s)
        end = self.goes(start_s, self.amount_s, working=True)
        if self.crashes_at < _INF:
            self.lost_s = min(self.lost_s, start_s + self.crashes_at * (end.t_s - start_s))
        yield self.until(end.t_s)
        self.work_s, self.full_power_s, self.heat = end.busy_s, end.power_s, end.heat
        self.flops = self.price.flops
        self.world.cools(self, end.t_s)

    def _shorten(self, until_s: float) -> None:
        """Leaves out the steps that would not be done by a time, but not the first one.

        Nobody foresees that an upload will be corrupted, or will have to share a link.
        """
        end = self.goes(self.began_s, self.amount_s, working=True, until_s=until_s)
        done = end.done_s / self.amount_s if self.amount_s > 0 else 1.0
        steps = math.floor(self.steps * done + _ROUNDING)
        if 1 <= steps < self.steps:
            share = steps / self.steps
            self.amount_s *= share
            self.price = self.price._replace(flops=int(self.price.flops * share))
            self.steps = steps

    def until(self, t_s: float) -> simpy.Event:
        """The event of a time; it fails before if the job is lost: its client leaves or crashes, say."""
        world = self.world
        while world.loses and self.stays_s < min(t_s, self.lost_s):
            there, changes_s = world.there(self, self.stays_s)
            if there:
                self.stays_s = changes_s
            else:
                self.lost_s = self.stays_s
        return At(world.env, t_s) if t_s <= self.lost_s else Lost(world.env, self.lost_s, GONE)

    def goes(self, t_s: float, amount_s: float, *, working: bool, until_s: float = _INF) -> StageProgress:
        """How a stage goes: through its client's absences, if it waits for them, and changes of speed.

        Args:
            amount_s: its length at full speed.
            working: whether it is work, to which speeds apply.
            until_s: looked at no later than this.
        """
        world, heat = self.world, self.heat
        speeds = world.speeds
        if not (world.pauses or speeds):
            busy_s = amount_s if until_s == _INF else min(max(until_s - t_s, 0.0), amount_s)
            return StageProgress(min(t_s + amount_s, until_s), busy_s, busy_s, busy_s, heat)
        left, busy_s, power_s = amount_s, 0.0, 0.0
        while left > 0 and t_s < until_s:
            there, hold_s, factor, power = True, until_s, 1.0, 1.0
            if world.pauses:
                there, changes_s = (True, self.stays_s) if t_s < self.stays_s else world.there(self, t_s)
                hold_s = min(hold_s, changes_s)
                if not there and changes_s == _INF:
                    # Nobody waits for a client that never comes back.
                    self.lost_s = min(self.lost_s, t_s)
            if speeds and there and working:
                factor, changes_s, power = speeds.at(self.client, t_s, heat)
                hold_s = min(hold_s, changes_s)
            need_s = left / factor
            ends = there and need_s <= hold_s - t_s
            after_s, spent_s = (t_s + need_s, need_s) if ends else (hold_s, hold_s - t_s)
            if speeds:
                heat = speeds.after(self.client, heat, t_s, after_s, working=working and there)
            if there:
                left = 0.0 if ends else left - spent_s * factor
                busy_s += spent_s
                power_s += spent_s * power
            t_s = after_s
        return StageProgress(t_s, amount_s - left, busy_s, power_s, heat)


def _moved(busy_s: float, delay_s: float, bps: float, size: int) -> int:
    beyond_s = busy_s - delay_s
    return int(min(size, beyond_s * bps / 8)) if beyond_s > 0 else 0


for _name in (*JOULES, "waiting_j"):
    setattr(Job, _name, 0.0)


def rows_of(jobs: Sequence[Job]) -> np.ndarray:
    """Jobs as rows of ``LIVE``; their energies are 0."""
    return np.fromiter(map(_row, jobs), LIVE, len(jobs))


# Whole rows as bytes: NumPy copies a row with fields one field after another.
_WHOLE = np.dtype(f"V{LIVE.itemsize}")


def stacked(each: Sequence[np.ndarray]) -> np.ndarray:
    """``np.concatenate`` of rows of ``LIVE``, many times as fast; of none, no rows."""
    whole = [np.ascontiguousarray(rows).view(_WHOLE) for rows in each]
    return np.concatenate([*whole, np.zeros(0, dtype=_WHOLE)]).view(LIVE)
