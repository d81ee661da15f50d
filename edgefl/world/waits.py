"""What waits for jobs to arrive."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import simpy

from edgefl.world.clock import Clock
from edgefl.world.table import Table

if TYPE_CHECKING:
    from edgefl.world.flights import Flights


class _Wait:
    """One event, when it is due as far as is known, and how many jobs at least have to end before it."""

    __slots__ = ("count", "event", "flights", "missing", "wakes_s")

    def __init__(self, event: simpy.Event, flights: Flights, count: int | None) -> None:
        self.event = event
        self.flights = flights
        self.count = count
        self.wakes_s = math.inf
        self.missing = 0


class Waits:
    """The events that wait for jobs; each is looked at when its jobs are due, and when any job ends early."""

    def __init__(self, clock: Clock, table: Table) -> None:
        self._clock = clock
        self._table = table
        self._waits: list[_Wait] = []
        # One event for all who wait for any job, and when it is due as far as is known.
        self._end, self._end_s = clock.event(), math.inf

    def wait(self, flights: Flights, count: int | None) -> simpy.Event:
        """See ``World.ended``."""
        wait = _Wait(self._clock.event(), flights, count)
        self._waits.append(wait)
        self._look(wait)
        return wait.event

    def next_end(self) -> simpy.Event | None:
        """An event: a job arrives or ends; None if no job is on its way."""
        due_s = self._table.rows["due_s"][self._table.open()]
        due_s = due_s[due_s > self._clock.now]
        if not len(due_s):
            return None
        if self._end.triggered:
            self._end, self._end_s = self._clock.event(), math.inf
        soonest_s = float(due_s.min())
        if soonest_s < self._end_s:
            self._end_s, event = soonest_s, self._end
            self._clock.call(soonest_s, lambda: self._ended(event))
        return self._end

    def look_again(self) -> None:
        """Jobs ended otherwise than was known."""
        self._ended(self._end)
        for wait in list(self._waits):
            self._look(wait)

    def end(self, jobs: int) -> None:
        """So many jobs, of which it was not known when, arrived or were lost."""
        self._ended(self._end)
        for wait in list(self._waits):
            wait.missing -= jobs
            if wait.missing <= 0:
                self._look(wait)

    @staticmethod
    def _ended(event: simpy.Event) -> None:
        if not event.triggered:
            event.succeed()

    def _look(self, wait: _Wait) -> None:
        if wait.event.triggered:
            return
        due_s = self._due_s(wait)
        if due_s <= self._clock.now:
            self._waits.remove(wait)
            wait.event.succeed()
        elif math.isinf(due_s):
            flights, under_way = wait.flights, int(wait.flights.in_flight.sum())
            count = under_way if wait.count is None else wait.count - int(flights.arrived.sum())
            wait.missing = min(under_way, count)
        elif due_s != wait.wakes_s:
            wait.wakes_s = due_s
            self._clock.call(due_s, lambda: self._look(wait))

    def _due_s(self, wait: _Wait) -> float:
        """When the event is due, as far as is known."""
        flights, count = wait.flights, wait.count
        open_, due_s = flights.open, flights.column("due_s")
        if count is not None:
            arrive_s = due_s[open_ & (flights.column("lost") == 0)]
            if count <= 0:
                return -math.inf
            if len(arrive_s) >= count:
                return float(np.partition(arrive_s, count - 1)[count - 1])
        return float(due_s[open_].max(initial=-math.inf))
