"""Clients that are kept at work, whatever the server does meanwhile."""

from collections.abc import Generator
from functools import partial
from heapq import heappop, heappush
from typing import Annotated, Any, TypeAlias

import simpy
from pydantic import Field

from edgefl.core.errors import ScenarioError
from edgefl.core.event import Kind
from edgefl.core.plan import Plan
from edgefl.world.clock import Process
from edgefl.world.job import Job
from edgefl.world.policies import Policy
from edgefl.world.policies._staleness import Staleness
from edgefl.world.world import World

Concurrency: TypeAlias = Annotated[
    int | None,
    Field(gt=0, description="clients at work at a time; the scenario's participants by default"),
]
MostStale: TypeAlias = Annotated[
    int | None, Field(ge=0, description="versions behind which an update is dropped")
]
Stale: TypeAlias = Annotated[Staleness, Field(description="how much stale updates count")]


class Streaming(Policy):
    """A policy without rounds of its own, which merges what is late, too."""

    def merges_stale(self) -> bool:
        return True

    def check(self, plan: Plan) -> None:
        """Raises a ``ScenarioError`` unless rounds need one exchange, and not with all clients."""
        names = [prices.exchange for prices in plan.prices if prices.at == "round"]
        everyone = [prices.exchange for prices in plan.prices if prices.at == "round" and prices.everyone]
        if len(names) != 1 or everyone:
            what = f"the exchanges {', '.join(names)}" if names else "no exchange"
            what = f"{everyone[0]}, with all clients," if len(names) == 1 else what
            raise ScenarioError(
                f"the policy {self.name!r} has no rounds, and "
                f"{plan.scenario.method.name} needs {what} in each",
                where="server.policy",
                hint="choose sync, deadline or overselect",
            )


class Stream:
    """Jobs of one exchange, of which a number is kept in flight."""

    def __init__(self, world: World, concurrency: int | None) -> None:
        """``concurrency``: clients at work at a time; None for the scenario's participants, or for all."""
        self._world = world
        (self.exchange,) = (prices for prices in world.plan.prices if prices.at == "round")
        most = concurrency or world.plan.scenario.server.participants or len(world.clients)
        self._missing = min(most, len(world.clients))
        # What has arrived and was not taken, the earliest first.
        self._arrived: list[tuple[float, int, Job]] = []
        self._at_work = 0

    def refill(self) -> Process:
        """Asks clients that are free and available; waits for one if nobody is at work."""
        missing = self._missing
        clients = self._world.choose(missing) if missing > 0 else ()
        if missing > 0 and not len(clients) and not self._at_work and not self._arrived:
            clients = yield from self._world.invite(self.exchange, count=missing)
        if len(clients):
            jobs = self._world.dispatch(self.exchange.exchange, clients)
            self._missing -= len(jobs)
            self._at_work += len(jobs)
            for job in jobs:
                job.process.callbacks.append(partial(self._over, job))

    def _over(self, job: Job, _: simpy.Event) -> None:
        self._missing += 1
        self._at_work -= 1
        if job.arrived:
            heappush(self._arrived, (job.arrived_s, job.job, job))

    def next(self, most_stale: int | None) -> Generator[simpy.Event, Any, Job | None]:
        """Waits for the earliest arrival, with clients kept at work; it leaves the stream.

        Nobody is asked before all that have arrived were taken: of equally fast clients none is stale.

        Args:
            most_stale: versions behind which it is discarded; None for any. Nothing is returned then.
        """
        while not self._arrived:
            yield from self.refill()
            if not self._arrived:
                yield self._world.change(clients=self._missing > 0)
        job = heappop(self._arrived)[-1]
        if most_stale is not None and self._world.version - job.version > most_stale:
            yield self._world.discard([job], Kind.LATE)
            return None
        return job

    def take_arrived(self) -> list[Job]:
        """All that have arrived; they leave the stream."""
        found = [job for *_, job in self._arrived]
        self._arrived.clear()
        return found
