"""One job in flight: where it is, and what it has cost so far."""

from __future__ import annotations

import simpy

from edgefl.core.event import NOTHING, Charge, Event, Job, JobRecord, Kind
from edgefl.core.price import Demand, Stage


class Flight:
    """A job from its dispatch to its end. The world alone changes it.

    Attributes:
        job: what was dispatched.
        demand: what it asks for.
        work_s: how long its work takes, at its client's speed.
        ended: SimPy's event: it arrived, or was given up.
        reached: the stations that it reached, with their events.
        charges: what each stage cost.
        ending: how it ended; None while it is in flight, or has arrived and waits.
    """

    ended: simpy.Process

    def __init__(self, job: Job, demand: Demand, work_s: float, dispatched: Event) -> None:
        self.job = job
        self.demand = demand
        self.work_s = work_s
        self.reached = {Kind.DISPATCHED: dispatched}
        self.charges: dict[Stage, Charge] = {}
        self.ending: Kind | None = None

    @property
    def arrived(self) -> bool:
        """Whether its upload is at the server."""
        return Kind.ARRIVED in self.reached

    @property
    def worked(self) -> bool:
        """Whether its work is done."""
        return Kind.WORKED in self.reached

    def broken_off(self, now_s: float) -> Charge:
        """What the stage in progress has cost by now, if it ends here; nothing where all are done."""
        demand = self.demand
        stages = (
            (Kind.RECEIVED, Stage.RECEIVE, demand.down_s),
            (Kind.WORKED, Stage.WORK, self.work_s),
            (Kind.ARRIVED, Stage.TRANSMIT, demand.up_s),
        )
        for station, stage, lasts_s in stages:
            if station not in self.reached:
                since_s = next(reversed(self.reached.values())).t_s
                charge = demand.broken_off(stage, now_s - since_s, lasts_s)
                self.charges[stage] = charge
                return charge
        return NOTHING

    def record(self, ended: Event, ending: Kind, into: int | None) -> JobRecord:
        """The job, which ends so."""
        reached, charges = self.reached, self.charges
        return JobRecord(
            self.job,
            dispatched=reached[Kind.DISPATCHED],
            received=reached.get(Kind.RECEIVED),
            worked=reached.get(Kind.WORKED),
            arrived=reached.get(Kind.ARRIVED),
            ended=ended,
            ending=ending,
            into=into,
            receive=charges.get(Stage.RECEIVE, NOTHING),
            work=charges.get(Stage.WORK, NOTHING),
            transmit=charges.get(Stage.TRANSMIT, NOTHING),
        )
