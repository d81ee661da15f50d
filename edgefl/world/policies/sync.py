"""Synchronous rounds: the server asks some clients, waits for all of them, merges, and goes on.

McMahan et al. 2017, Algorithm 1. Merging takes virtual time where there is a ``server.device``.
"""

from edgefl.world.clock import Process
from edgefl.world.policies import Policy
from edgefl.world.world import World


class Params(Policy):
    BLIND = True

    def serve(self, world: World) -> Process:
        while world.serving:
            for exchange in world.due():
                yield from world.collect(exchange)
            yield from world.end_round()
