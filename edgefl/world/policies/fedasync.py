"""FedAsync (Xie et al. 2019, Algorithm 1): each update is mixed into the model when it arrives.

w <- (1 - alpha s(d)) w + alpha s(d) w_k, with the staleness d in versions. The paper's proximal term is the
method's: choose ``fedprox``. A round is a merge.
"""

from typing import Annotated

from pydantic import Field

from edgefl.world.clock import Process
from edgefl.world.policies._staleness import Staleness
from edgefl.world.policies._stream import Concurrency, MostStale, Stale, Stream, Streaming
from edgefl.world.world import World


class Params(Streaming):
    STREAMS = True

    alpha: Annotated[float, Field(gt=0, le=1, description="share of a fresh update in the new model")] = 0.6
    staleness: Stale = Staleness()
    concurrency: Concurrency = None
    most_stale: MostStale = None

    def asks(self, participants: int | None) -> int | None:
        return self.concurrency or participants

    def merges(self, asked: float) -> float:  # noqa: ARG002
        return 1.0

    def serve(self, world: World) -> Process:
        stream = Stream(world, self.concurrency)

        def scale(behind: int) -> float:
            return self.alpha * self.staleness.scale(behind)

        while world.serving:
            job = yield from stream.next(self.most_stale)
            if job is not None:
                yield from world.merge(stream.exchange.exchange, [job], scales=scale, correction="mix")
                yield from world.end_round()
