"""Uniform selection without replacement (McMahan et al. 2017, Algorithm 1)."""

import numpy as np

from edgefl.core import draws
from edgefl.core.arrays import Ints
from edgefl.world.selectors import Selector, SelectorParams
from edgefl.world.world import World


class Params(SelectorParams):
    BLIND = True

    def build(self, world: World) -> Selector:
        return _Random(world)


class _Random(Selector):
    def __init__(self, world: World) -> None:
        self._world = world
        self._round: int | None = None
        self._selections = 0

    def select(self, count: int, candidates: Ints) -> Ints:
        return candidates[self.cohort_places(count, len(candidates))]

    def cohort_places(self, count: int, candidates: int) -> Ints:
        root, round_ = self._world.plan.scenario.seed, self._world.round
        if round_ == self._round:
            rng = draws.generator(root, "another cohort", nth=self._selections)
        else:
            rng = draws.generator(root, "cohort", nth=round_)
        self._round = round_
        self._selections += 1
        if count == 1:
            # What choice draws then, in half the time: asynchronous policies ask one client at a time.
            return np.array([rng.integers(candidates)])
        # Without shuffling, NumPy takes as long as there are clients to choose, not candidates.
        return np.sort(rng.choice(candidates, count, replace=False, shuffle=False))
