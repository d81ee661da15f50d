"""FedBuff (Nguyen et al. 2022, Algorithm 1): a merge takes as many updates as the buffer holds.

w <- w + (eta / K) sum of s(d) delta over the K updates in the buffer, with the staleness d in versions and
s(d) = 1 / sqrt(1 + d). A client that is done is replaced at once. A round is a merge.
"""

from typing import Annotated, Literal

from pydantic import Field

from edgefl.core.params import Positive
from edgefl.world.clock import Process
from edgefl.world.job import Job
from edgefl.world.policies._staleness import Staleness
from edgefl.world.policies._stream import Concurrency, MostStale, Stale, Stream, Streaming
from edgefl.world.world import World


class Params(Streaming):
    STREAMS = True

    buffer: Annotated[int, Field(gt=0, description="K, updates in a merge")] = 10
    concurrency: Concurrency = None
    staleness: Stale = Staleness()
    most_stale: MostStale = None
    server_rate: Annotated[Positive, Field(description="eta, the server's learning rate")] = 1.0
    weights: Annotated[Literal["equal", "samples"], Field(description="of updates in the mean")] = "equal"

    def asks(self, participants: int | None) -> int | None:
        return self.concurrency or participants

    def merges(self, asked: float) -> float:  # noqa: ARG002
        return float(self.buffer)

    def serve(self, world: World) -> Process:
        stream = Stream(world, self.concurrency)

        def scale(behind: int) -> float:
            return self.server_rate * self.staleness.scale(behind)

        while world.serving:
            buffer: list[Job] = []
            while len(buffer) < self.buffer:
                job = yield from stream.next(self.most_stale)
                buffer += [] if job is None else [job]
            yield from world.merge(
                stream.exchange.exchange, buffer, scales=scale, equal=self.weights == "equal"
            )
            yield from world.end_round()
