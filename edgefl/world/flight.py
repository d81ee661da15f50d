"""One job in flight: how far it is, and what it has cost so far."""

from __future__ import annotations

import simpy

from edgefl.core.event import NOTHING, Charge, Event, Job, JobRecord, Kind
from edgefl.core.price import Demand, Stage


class Flight:
    """A job from its dispatch to its end. Only the world changes it.

    Attributes:
        job: what was dispatched.
        demand: its quantities.
        work_s: how long the work takes at its client's speed.
        ended: SimPy's event: it arrived, or was discarded.
        stations: the events so far: dispatched, received, worked, arrived.
        charges: what each stage cost so far: receive, work, transmit.
        ending: how it ended; None while it is in flight or waits at the server.
    """

    __slots__ = ("charges", "demand", "ended", "ending", "job", "stations", "work_s")

    ended: simpy.Process

    def __init__(self, job: Job, demand: Demand, work_s: float, dispatched: Event) -> None:
        self.job = job
        self.demand = demand
        self.work_s = work_s
        self.stations = [dispatched]
        self.charges: list[Charge] = []
        self.ending: Kind | None = None

    @property
    def worked(self) -> bool:
        """Whether its work is done."""
        return len(self.stations) > 2  # noqa: PLR2004 - dispatched, received, worked

    @property
    def arrived(self) -> bool:
        """Whether its upload is at the server."""
        return len(self.stations) > 3  # noqa: PLR2004 - and arrived

    def break_off(self, now_s: float) -> Charge:
        """Ends the stage in progress now; returns what it cost, nothing if all stages are done."""
        if self.arrived:
            return NOTHING
        durations = (
            (Stage.RECEIVE, self.demand.down_s),
            (Stage.WORK, self.work_s),
            (Stage.TRANSMIT, self.demand.up_s),
        )
        stage, duration_s = durations[len(self.charges)]
        elapsed_s = now_s - self.stations[-1].t_s
        charge = self.demand.broken_off(stage, elapsed_s, duration_s, self.work_s)
        self.charges.append(charge)
        return charge

    def record(self, ended: Event, ending: Kind, into: int | None) -> JobRecord:
        """The ended job as a record."""
        received, worked, arrived = [*self.stations[1:], None, None, None][:3]
        charges = [*self.charges, NOTHING, NOTHING, NOTHING][:3]
        return JobRecord(self.job, self.stations[0], received, worked, arrived, ended, ending, into, *charges)
