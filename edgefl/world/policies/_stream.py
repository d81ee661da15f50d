"""Clients that are kept at work, whatever the server does meanwhile."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import simpy

from edgefl.core.errors import ScenarioError
from edgefl.core.event import Kind
from edgefl.core.plan import Plan
from edgefl.world.flights import Flights
from edgefl.world.world import World


def check_one_exchange(plan: Plan) -> None:
    """Refuses a method that needs more than one exchange in a round, or one with all clients.

    Raises:
        ScenarioError: it does.
    """
    names = [prices.exchange for prices in plan.prices if prices.at == "round"]
    everyone = [prices.exchange for prices in plan.prices if prices.at == "round" and prices.everyone]
    if len(names) != 1 or everyone:
        what = f"the exchanges {', '.join(names)}" if names else "no exchange"
        what = f"{everyone[0]}, with all clients," if len(names) == 1 else what
        raise ScenarioError(
            f"the policy {plan.scenario.server.policy.name!r} has no rounds, and "
            f"{plan.scenario.method.name} needs {what} in each",
            where="server.policy",
            hint="choose sync, deadline or overselect",
        )


class Stream:
    """Jobs of one exchange, of which a number is kept in flight.

    Attributes:
        exchange: which.
    """

    def __init__(self, world: World, concurrency: int | None) -> None:
        """Starts without jobs.

        Args:
            world: the world.
            concurrency: the most clients at work at a time; None for the scenario's participants, or for all.
        """
        self._world = world
        (self.exchange,) = (prices for prices in world.plan.prices if prices.at == "round")
        most = concurrency or world.plan.scenario.server.participants or len(world.clients)
        self._concurrency = min(most, len(world.clients))
        self._flights: Flights = world.no_flights()

    def refill(self) -> Generator[simpy.Event, Any, None]:
        """Asks clients that are free and available; waits for one if nobody is at work."""
        self._flights = self._flights[self._flights.open]
        missing = self._missing
        clients = self._world.choose(missing) if missing > 0 else self._flights.clients[:0]
        if missing > 0 and not len(clients) and not len(self._flights):
            clients = yield from self._world.invite(self.exchange, count=missing)
        if len(clients):
            self._flights = self._flights + self._world.dispatch(self.exchange.exchange, clients)

    def next(self) -> Generator[simpy.Event, Any, Flights]:
        """Waits for the earliest arrival, with clients kept at work; it leaves the stream.

        Nobody is asked before all that have arrived were taken: of equally fast clients none is stale.
        """
        while not len(first := self._flights.earliest(1)):
            yield from self.refill()
            if not self._flights.arrived.any():
                yield self._world.change(clients=self._missing > 0)
        self._flights = self._flights[self._flights.jobs != first.jobs[0]]
        return first

    def take_arrived(self) -> Flights:
        """All that have arrived; they leave the stream."""
        arrived = self._flights[self._flights.arrived]
        self._flights = self._flights[self._flights.in_flight]
        return arrived

    @property
    def _missing(self) -> int:
        """How many more clients there may be at work."""
        return self._concurrency - int(np.count_nonzero(self._flights.in_flight))

    def drop_stale(self, flights: Flights, most: int | None) -> Flights:
        """Discards those that began more than ``most`` versions ago; returns the others."""
        if most is None:
            return flights
        stale = self._world.version - flights.rows["version"] > most
        if stale.any():
            self._world.discard(flights[stale], Kind.LATE)
        return flights[~stale]
