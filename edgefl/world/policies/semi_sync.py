"""Merges at fixed intervals, of whatever has arrived; nobody is interrupted.

After Stripelis, Thompson and Ambite 2022 ("Semi-synchronous federated learning for energy-efficient training
and accelerated convergence in cross-silo settings"), whose clients all train for one period. Here a client
that is slower than the interval goes on, and its update counts less by its staleness; who is free is asked at
each merge.
"""

from typing import Annotated

from pydantic import Field

from edgefl.core.units import Seconds
from edgefl.world.clock import Process
from edgefl.world.policies._staleness import Staleness
from edgefl.world.policies._stream import Stale, Stream, Streaming
from edgefl.world.world import World


class Params(Streaming):
    interval: Annotated[Seconds, Field(gt=0, description="between two merges")]
    staleness: Stale = Staleness()

    def lasts_s(self) -> tuple[float, float]:
        return self.interval, self.interval

    def serve(self, world: World) -> Process:
        stream = Stream(world, None)
        while world.serving:
            yield from stream.refill()
            yield world.env.timeout(self.interval)
            arrived = stream.take_arrived()
            yield from world.merge(stream.exchange.exchange, arrived, scales=self.staleness.scale)
            yield from world.end_round()
