"""Rounds with a deadline: what has arrived by then is merged.

The deadline that drops stragglers is that of production systems (Bonawitz et al. 2019, Section 4.2: a
reporting window); partial work is FedProx's (Li et al. 2020, Section 3.2). A round in which nobody arrives
merges nothing. Exchanges with all clients have no deadline.
"""

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from edgefl.core.arrays import Ints
from edgefl.core.event import Kind
from edgefl.core.plan import Prices
from edgefl.core.units import Seconds
from edgefl.world.clock import Process
from edgefl.world.job import Job
from edgefl.world.policies import Policy
from edgefl.world.policies._staleness import Staleness
from edgefl.world.world import World


class Params(Policy):
    seconds: Annotated[Seconds | None, Field(gt=0, description="after the round's start")] = None
    quantile: Annotated[
        float | None,
        Field(gt=0, le=1, description="of the asked clients' predicted times, in place of seconds"),
    ] = None
    late: Annotated[
        Literal["drop", "merge"],
        Field(description="late updates are dropped, or merged by the round in which they arrive"),
    ] = "drop"
    staleness: Annotated[Staleness, Field(description="how much late updates count")] = Staleness()
    allow_partial: Annotated[
        bool, Field(description="clients stop in time to upload the steps done by then")
    ] = False

    @model_validator(mode="after")
    def _one_deadline(self) -> "Params":
        if (self.seconds is None) == (self.quantile is None):
            raise ValueError("give either seconds or quantile")
        return self

    def merges_stale(self) -> bool:
        """Late updates began at an older version."""
        return self.late == "merge"

    def lasts_s(self) -> tuple[float, float]:
        return 0.0, self.seconds or math.inf

    def serve(self, world: World) -> Process:
        late: dict[str, list[Job]] = {prices.exchange: [] for prices in world.plan.prices}
        while world.serving:
            for exchange in world.due():
                yield from _round(world, self, exchange, late)
            yield from world.end_round()


# Of a deadline: who is late by a rounding error is not late.
_ROUNDING = 1e-9


def _round(world: World, params: Params, exchange: Prices, late: dict[str, list[Job]]) -> Process:
    """One exchange; ``late`` are the jobs of each that are still on their way."""
    name = exchange.exchange
    clients = yield from world.invite(exchange)
    if exchange.everyone:
        jobs = world.dispatch(name, clients)
        yield world.ended(jobs)
    else:
        deadline_s = _deadline_s(world, params, exchange, clients)
        by = world.now_s + deadline_s if params.allow_partial else None
        jobs = late.pop(name) + world.dispatch(name, clients, finish_by=by)
        yield world.ended(jobs) | world.env.timeout(deadline_s * (1 + _ROUNDING))
    # A client's older job is merged before its newer one, whatever exchanges they are of.
    for other, waiting in late.items():
        if here := [job for job in waiting if job.arrived]:
            yield from world.merge(other, here, scales=params.staleness.scale)
            late[other] = [job for job in waiting if job.in_flight]
    arrived, under_way = [job for job in jobs if job.arrived], [job for job in jobs if job.in_flight]
    if params.late == "drop" and under_way:
        yield world.discard(under_way, Kind.LATE)
    yield from world.merge(name, arrived, scales=params.staleness.scale)
    late[name] = [job for job in under_way if job.open]


def _deadline_s(world: World, params: Params, exchange: Prices, clients: Ints) -> float:
    if params.seconds is not None:
        return params.seconds
    return float(np.quantile(world.predicted_s(exchange, clients), params.quantile or 1.0))
