"""Starts jobs, and knows who can be asked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import simpy

from edgefl.core.draws import Floats
from edgefl.core.errors import RunError
from edgefl.core.plan import Ints, Plan
from edgefl.world.blind import shared
from edgefl.world.clock import Clock
from edgefl.world.flights import Flights
from edgefl.world.network import Network
from edgefl.world.network.direct import Direct
from edgefl.world.network.shared import Shared
from edgefl.world.table import LIVE, Rows, Table
from edgefl.world.tails import Tails
from edgefl.world.timeline import Timeline
from edgefl.world.waits import Waits

if TYPE_CHECKING:
    from edgefl.world.world import World


class Dispatcher:
    """Fills the table of jobs.

    Attributes:
        timeline: the times of jobs.
        table: the jobs that have not ended.
        waits: what waits for them.
        tails: what their clients' radios draw between transfers.
        network: how far their transfers are.
    """

    def __init__(self, plan: Plan, clock: Clock, *, stepwise: bool) -> None:
        self.timeline = Timeline(plan)
        self.table = Table(self.timeline.states_of_each)
        self.waits = Waits(clock, self.table)
        self.tails = Tails(plan, self.table)
        self.network: Network = (
            Shared(plan, clock, self.timeline, self.tails, self.table, self._leaves, self.waits.end)
            if stepwise or any(shared(plan))
            else Direct(plan, self.timeline, self.tails)
        )
        self._plan = plan
        self._clock = clock
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
        self.network.launch(rows, states, given_up, finish_by)
        losses_s = rows["due_s"][rows["lost"] != 0]
        self._next_loss_s = min(self._next_loss_s, float(losses_s.min(initial=math.inf)))
        self._ask_again(clients)
        self._slots[clients] = slots = self.table.put(rows, states)
        self._free_s[clients] = rows["due_s"]
        self._busy_until_s = max(self._busy_until_s, float(rows["due_s"].max(initial=-math.inf)))
        self.network.begin(slots, given_up, finish_by)
        return Flights(world, slots, rows["job"].copy(), clients)

    def release(self, rows: Rows, states: Floats) -> None:
        """Jobs were broken off: their clients are free, and their speeds as they were then."""
        clients, at_s = rows["client"], rows["ended_s"]
        self._free_s[clients] = at_s
        self.timeline.commit(clients, at_s, states)
        self.tails.leave(rows)
        self.network.drop(rows["job"])

    def _leaves(self, client: int, *, lost: bool) -> None:
        """A job arrived or was lost, which the network did not know before."""
        self._free_s[client] = self._clock.now
        if lost:
            self._next_loss_s = min(self._next_loss_s, self._clock.now)

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
