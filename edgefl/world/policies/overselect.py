"""More clients are asked than needed; the first that arrive are merged, the others are dropped.

Bonawitz et al. 2019, Section 9, asks 1.3 times as many; so does FedScale (Lai et al. 2022), which this is the
same as on a fleet described as FedScale describes it. Exchanges with all clients wait for all.
"""

from operator import attrgetter
from typing import Annotated

from pydantic import Field

from edgefl.core.errors import ScenarioError
from edgefl.core.event import Kind
from edgefl.core.plan import Plan, Prices
from edgefl.world.clock import Process
from edgefl.world.policies import Policy
from edgefl.world.world import World


class Params(Policy):
    factor: Annotated[float, Field(ge=1, description="times the scenario's participants")] = 1.3

    def check(self, plan: Plan) -> None:
        if plan.scenario.server.participants is None:
            raise ScenarioError(
                "the policy 'overselect' needs to know how many clients to merge",
                where="server.policy",
                hint="add server.participants",
            )

    def asks(self, participants: int | None) -> int | None:
        """More than are merged, rounded as ``World.invite`` does."""
        return None if participants is None else max(1, int(participants * self.factor))

    def serve(self, world: World) -> Process:
        while world.serving:
            for exchange in world.due():
                if exchange.everyone:
                    yield from world.collect(exchange)
                else:
                    yield from _round(world, self, exchange)
            yield from world.end_round()


def _round(world: World, params: Params, exchange: Prices) -> Process:
    wanted = world.plan.scenario.server.participants
    jobs = world.dispatch(exchange.exchange, (yield from world.invite(exchange, factor=params.factor)))
    yield world.ended(jobs, wanted)
    first = sorted((job for job in jobs if job.arrived), key=attrgetter("arrived_s", "job"))[:wanted]
    chosen = set(first)
    yield world.discard([job for job in jobs if job.open and job not in chosen], Kind.LATE)
    yield from world.merge(exchange.exchange, first)
