"""Starts jobs, and knows who can be asked."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np
import simpy

from edgefl.core.draws import Floats
from edgefl.core.errors import RunError
from edgefl.core.plan import Ints, Plan
from edgefl.world.clock import Clock
from edgefl.world.flights import Flights
from edgefl.world.table import LIVE, Rows, Table
from edgefl.world.tails import Tails
from edgefl.world.timeline import Timeline
from edgefl.world.waits import Waits

if TYPE_CHECKING:
    from edgefl.world.world import World

# Of a job's steps that a budget of time allows: a rounding error below a whole number counts as it.
_ROUNDING = 1e-9
_STAGES = (("received_s", "down_s"), ("worked_s", "amount_s"), ("arrived_s", "up_s"))


class Dispatcher:
    """Fills the table of jobs.

    Attributes:
        timeline: the times of jobs.
        table: the jobs that have not ended.
        waits: what waits for them.
        tails: what their clients' radios draw between transfers.
    """

    def __init__(self, plan: Plan, clock: Clock, *, stepwise: bool) -> None:
        self.timeline = Timeline(plan)
        self.table = Table(self.timeline.states_of_each)
        self.waits = Waits(clock, self.table)
        self.tails = Tails(plan)
        self._plan = plan
        self._clock = clock
        self._stepwise = stepwise
        self._free_s = np.full(len(plan.clients), -math.inf)
        self._busy_until_s = -math.inf
        # Of each client's last job.
        self._slots = np.zeros(len(plan.clients), dtype=np.int64)
        # No job is lost on its own before.
        self._next_loss_s = math.inf
        self._nth = np.zeros((len(plan.prices), len(plan.clients)), dtype=np.int32)
        self._jobs = 0

    def candidates(self, clients: Ints) -> Ints:
        """Those of the clients that are free and available now."""
        now_s = self._clock.now
        if self._busy_until_s > now_s:
            clients = clients[self._free_s[clients] <= now_s]
        return self.timeline.available(clients, now_s)

    def change(self, clients: Ints) -> simpy.Event:
        """An event: a job arrives or ends, or one of the clients becomes available.

        Raises:
            RunError: neither will ever happen.
        """
        there_s = self.timeline.back_s(clients, self._clock.now)
        ends = self.waits.next_end()
        if ends is not None:
            return ends if math.isinf(there_s) else ends | self._clock.at(there_s)
        if math.isinf(there_s):
            raise RunError(
                f"nobody can be asked any more after {self._clock.now:.6g} s of virtual time",
                where="fleet.availability",
                hint="no client will be available again; see the fleet's availability",
            )
        return self._clock.at(there_s)

    def dispatch(
        self, world: World, exchange: str, clients: Ints, turn: int, finish_by: float | None
    ) -> Flights:
        """Starts jobs; see ``World.dispatch``."""
        place = next(place for place, prices in enumerate(self._plan.prices) if prices.exchange == exchange)
        kinds = self._plan.clients.kind[clients]
        demand = self._plan.prices[place].demand(kinds)
        rows = np.zeros(len(clients), dtype=LIVE)
        rows["job"] = np.arange(self._jobs, self._jobs + len(clients))
        self._jobs += len(clients)
        rows["client"], rows["exchange"], rows["kind"] = clients, place, kinds
        rows["round"], rows["version"], rows["dispatched_turn"] = world.round, world.version, turn
        rows["dispatched_s"], rows["into_version"] = self._clock.now, -1
        rows["nth"] = self._nth[place, clients]
        self._nth[place, clients] += 1
        rows["steps"], rows["flops"], rows["down_bytes"] = demand.steps, demand.flops, demand.down_bytes
        rows["amount_s"], sends = self.timeline.drawn(exchange, clients, rows["nth"], demand.work_s)
        most = 1 + self._plan.fleet.failures.retries
        # An upload without bytes cannot be corrupted.
        rows["sends"] = np.where(demand.up_bytes > 0, np.minimum(sends, most), 1)
        given_up = (sends > most) & (demand.up_bytes > 0)
        rows["down_s"], rows["up_s"] = demand.down_s, demand.up_s * rows["sends"]
        rows["up_bytes"] = demand.up_bytes * rows["sends"]
        rows["receive_s"], rows["transmit_s"] = rows["down_s"], rows["up_s"]
        rows["there_s"] = self.timeline.stays_s(clients, self._clock.now)
        rows["next_s"] = math.inf
        self.tails.before(rows)
        states = self.timeline.states(clients, self._clock.now)
        if self._stepwise:
            rows["received_s"] = rows["worked_s"] = rows["arrived_s"] = rows["due_s"] = math.inf
        else:
            self._times(rows, states, given_up, finish_by)
            self.tails.leave(rows)
            losses_s = rows["due_s"][rows["lost"] != 0]
            self._next_loss_s = min(self._next_loss_s, float(losses_s.min(initial=math.inf)))
        self._ask_again(clients)
        self._slots[clients] = slots = self.table.put(rows, states)
        self._free_s[clients] = rows["due_s"]
        self._busy_until_s = max(self._busy_until_s, float(rows["due_s"].max(initial=-math.inf)))
        if self._stepwise:
            for place, slot in enumerate(slots.tolist()):
                own = states[place : place + 1]
                self._clock.process(self._fly(slot, own, given_up[place : place + 1], finish_by))
        return Flights(world, slots, rows["job"].copy(), clients)

    def release(self, rows: Rows, states: Floats) -> None:
        """Jobs were broken off: their clients are free, and their speeds as they were then."""
        clients, at_s = rows["client"], rows["ended_s"]
        self._free_s[clients] = at_s
        self.timeline.commit(clients, at_s, states)
        self.tails.leave(rows)

    def lost(self) -> Ints:
        """The slots of jobs that were lost on their own until now, by job."""
        now_s = self._clock.now
        if self._next_loss_s > now_s:
            return np.zeros(0, dtype=np.int64)
        slots = self.table.open()
        due_s = np.where(self.table.rows["lost"][slots] != 0, self.table.rows["due_s"][slots], math.inf)
        self._next_loss_s = float(due_s.min(initial=math.inf, where=due_s > now_s))
        return slots[due_s <= now_s]

    def _ask_again(self, clients: Ints) -> None:
        """Notes in the clients' jobs that still wait to be merged that the clients have a newer one."""
        rows, slots = self.table.rows, self._slots[clients]
        # Another client's job may have taken the place of one that ended.
        rows["next_s"][slots[rows["client"][slots] == clients]] = self._clock.now

    def _times(self, rows: Rows, states: Floats, given_up: np.ndarray, finish_by: float | None) -> None:
        """Fills in all times of jobs."""
        clients = rows["client"]
        received = self.timeline.stage(clients, rows["dispatched_s"], rows["down_s"], states, working=False)
        rows["received_s"] = received.t_s
        self._shorten(rows, received.states, finish_by)
        worked = self.timeline.stage(
            clients, rows["received_s"], rows["amount_s"], received.states, working=True
        )
        rows["worked_s"], rows["work_s"], rows["full_power_s"] = worked.t_s, worked.busy_s, worked.power_s
        self.timeline.commit(clients, worked.t_s, worked.states)
        sent = self.timeline.stage(clients, worked.t_s, rows["up_s"], worked.states, working=False)
        self._arrive(rows, sent.t_s, given_up | self.timeline.absent(clients, sent.t_s))

    def _arrive(self, rows: Rows, end_s: Floats, given_up: np.ndarray) -> None:
        """Fills in when jobs arrive or are lost, given when their last known stage ends."""
        rows["arrived_s"] = np.where(given_up, math.inf, end_s)
        lost_s = np.full(len(rows), math.inf)
        if self.timeline.losing:
            name = self._plan.prices[int(rows["exchange"][0])].exchange if len(rows) else ""
            lost_s = self.timeline.losses(rows, name, np.where(given_up, end_s, math.inf))
        rows["lost"] = np.isfinite(lost_s)
        rows["due_s"] = np.minimum(rows["arrived_s"], lost_s)

    def _shorten(self, rows: Rows, states: Floats, finish_by: float | None) -> None:
        """Reduces work, in place, to the whole steps that leave time for the upload; at least to one."""
        if finish_by is None:
            return
        # Nobody foresees that an upload will be corrupted.
        stop_s = finish_by - rows["up_s"] / rows["sends"]
        work = self.timeline.stage(
            rows["client"], rows["received_s"], rows["amount_s"], states, working=True, until_s=stop_s
        )
        done = np.divide(work.done_s, rows["amount_s"], out=np.ones(len(rows)), where=rows["amount_s"] > 0)
        steps = np.floor(rows["steps"] * done + _ROUNDING).astype(np.int64)
        short = (steps >= 1) & (steps < rows["steps"])
        share = np.divide(steps, rows["steps"], out=np.ones(len(rows)), where=rows["steps"] > 0)
        rows["amount_s"] = np.where(short, rows["amount_s"] * share, rows["amount_s"])
        rows["flops"] = np.where(short, (rows["flops"] * share).astype(np.int64), rows["flops"])
        rows["steps"] = np.where(short, steps, rows["steps"])

    def _fly(
        self, slot: int, states: Floats, given_up: np.ndarray, finish_by: float | None
    ) -> Generator[simpy.Event, Any, None]:
        """A SimPy process: one job from station to station."""
        at, job = slice(slot, slot + 1), int(self.table.rows["job"][slot])
        never = np.array([False])
        for station, amount in _STAGES:
            row = self.table.rows[at].copy()
            working, last = station == "worked_s", station == "arrived_s"
            if working:
                self._shorten(row, states, finish_by)
            now = np.array([self._clock.now])
            stage = self.timeline.stage(row["client"], now, row[amount], states, working=working)
            states = stage.states
            if working:
                row["work_s"], row["full_power_s"] = stage.busy_s, stage.power_s
                self.timeline.commit(row["client"], stage.t_s, states)
            row[station] = stage.t_s
            in_vain = given_up | self.timeline.absent(row["client"], stage.t_s) if last else never
            self._arrive(row, stage.t_s, in_vain)
            lost, ends_s = bool(row["lost"][0]), float(row["due_s"][0])
            if not last:
                row["arrived_s"] = math.inf
            row["due_s"], row["lost"] = math.inf, 0
            self.table.rows[at] = row
            yield self._clock.at(ends_s, urgent=True)
            row = self.table.rows[at]
            if row["job"][0] != job or row["ending"][0]:
                # Discarded: its end is recorded already.
                return
            if lost or last:
                row["due_s"], row["lost"] = ends_s, lost
                if not lost:
                    self.tails.leave(row)
                self._next_loss_s = min(self._next_loss_s, ends_s if lost else math.inf)
                self._free_s[row["client"]] = ends_s
                self.waits.look_again()
                return
