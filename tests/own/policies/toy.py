"""Clients who are always at work; some of what they do is lost, some is given up late, some waits."""

from typing import Annotated

import numpy as np
import simpy
from pydantic import Field

from edgefl.core.event import Kind
from edgefl.world.policies import Policy


class Params(Policy):
    """Shares of jobs that are lost on the way and given up on arrival; how many merge together."""

    lost: Annotated[float, Field(ge=0, le=1)] = 0.2
    late: Annotated[float, Field(ge=0, le=1)] = 0.2
    buffer: Annotated[int, Field(gt=0)] = 2
    seed: int = 0

    def merges_stale(self) -> bool:
        """See ``Policy``."""
        return True

    def serve(self, world):
        """Merges the oldest arrivals as soon as there are enough; leaves the others waiting."""
        rng = np.random.default_rng(self.seed)
        inbox, came = [], simpy.Store(world.env)

        def busy(client):
            while world.serving:
                (job,) = jobs = world.dispatch(exchange.exchange, client)
                patience = world.env.timeout(rng.exponential(2.0)) if rng.random() < self.lost else None
                yield world.ended(jobs) if patience is None else world.ended(jobs) | patience
                if not job.arrived:
                    yield world.discard(jobs, Kind.LOST)
                elif rng.random() < self.late:
                    yield world.discard(jobs, Kind.LATE)
                else:
                    inbox.append(job)
                    yield came.put(job)
                yield world.env.timeout(rng.exponential(0.5))

        (exchange,) = world.due()
        for client in world.clients:
            world.env.process(busy(client))
        while world.serving:
            while len(inbox) < self.buffer:
                yield came.get()
            jobs, inbox[:] = inbox[: self.buffer], inbox[self.buffer :]
            yield from world.merge(exchange.exchange, jobs, scales=lambda staleness: 1 / (1 + staleness))
            # No job waits forever: what is passed over is late.
            while len(inbox) > len(world.clients):
                yield world.discard([inbox.pop(0)], Kind.LATE)
            yield from world.end_round()
