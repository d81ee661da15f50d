"""FedAsync (Xie et al. 2019, Algorithm 1): each update is mixed into the model when it arrives.

w <- (1 - alpha s(d)) w + alpha s(d) w_k, with the staleness d in versions. The paper's proximal term is the
method's: choose ``fedprox``. A round is a merge.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Annotated, Any

import simpy
from pydantic import Field

from edgefl.core.plan import Plan
from edgefl.world.policies import Policy
from edgefl.world.policies._staleness import Staleness
from edgefl.world.policies._stream import Stream, check_one_exchange
from edgefl.world.world import World


class Params(Policy):
    """How updates are mixed, and how many clients work at a time."""

    STREAMS = True

    alpha: Annotated[float, Field(gt=0, le=1, description="share of a fresh update in the new model")] = 0.6
    staleness: Annotated[Staleness, Field(description="how much stale updates count")] = Staleness()
    concurrency: Annotated[
        int | None,
        Field(gt=0, description="clients at work at a time; the scenario's participants by default"),
    ] = None
    most_stale: Annotated[
        int | None, Field(ge=0, description="versions behind which an update is dropped")
    ] = None

    def merges_stale(self) -> bool:
        return True

    def check(self, plan: Plan) -> None:
        check_one_exchange(plan)

    def asks(self, participants: int | None) -> int | None:
        return self.concurrency or participants

    def merges(self, asked: float) -> float:  # noqa: ARG002
        return 1.0

    def serve(self, world: World) -> Generator[simpy.Event, Any, None]:
        stream = Stream(world, self.concurrency)

        def scale(behind: int) -> float:
            return self.alpha * self.staleness.scale(behind)

        while world.serving:
            job = yield from stream.next(self.most_stale)
            if job is not None:
                yield from world.merge(stream.exchange.exchange, [job], scales=scale, correction="mix")
                yield from world.end_round()
