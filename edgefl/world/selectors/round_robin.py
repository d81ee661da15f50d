"""Clients in turn: those that were asked longest ago, in their order."""

import numpy as np

from edgefl.core.arrays import Ints
from edgefl.world.selectors import Jobs, Scalars, Selector, SelectorParams, lowest
from edgefl.world.world import World


class Params(SelectorParams):
    BLIND = True

    def build(self, world: World) -> Selector:
        return _RoundRobin(world)


class _RoundRobin(Selector):
    def __init__(self, world: World) -> None:
        self._world = world
        self._asked_s = np.full(len(world.plan.clients), -np.inf)

    def select(self, count: int, candidates: Ints) -> Ints:
        chosen = lowest(self._asked_s[candidates], candidates, count)
        self._asked_s[chosen] = self._world.now_s
        return chosen

    def observe(self, jobs: Jobs, scalars: Scalars) -> None:  # noqa: ARG002 - every observer gets them
        """Clients are also asked without a choice, where there are no others."""
        np.maximum.at(self._asked_s, jobs["client"], jobs["dispatched_s"])
