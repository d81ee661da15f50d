"""Power-of-choice: of some candidates drawn by their data, those of the highest loss (Cho et al. 2020).

Section 4: the server draws d candidates without replacement, with probabilities in proportion to their
samples, and asks the m of the highest local loss. A loss is the client's mean training loss when it last took
part, which costs nothing to know (the paper's variant rpow-d); that of a client that never did is infinite,
so that it goes first. Of equal losses, the one drawn earlier is taken. Without training all losses are
unknown, and selection is by data alone.
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from edgefl.core import draws
from edgefl.core.arrays import Ints
from edgefl.world.selectors import Draws, Jobs, Scalars, Selector, SelectorParams, reported
from edgefl.world.world import World


class Params(SelectorParams):
    READS = ("loss",)

    # The paper's experiments take d = 2 m (d = 6, m = 3) and more.
    factor: Annotated[
        float, Field(ge=1, description="candidates per client asked, d / m; 1 is by data alone")
    ] = 2.0

    def build(self, world: World) -> Selector:
        return _PowerOfChoice(self, world)


class _PowerOfChoice(Selector):
    def __init__(self, params: Params, world: World) -> None:
        self._factor = params.factor
        self._samples = world.plan.clients.samples
        self._draws = Draws(world, "candidates")
        self._loss = np.full(len(self._samples), np.inf)

    def select(self, count: int, candidates: Ints) -> Ints:
        considered = min(len(candidates), max(count, round(count * self._factor)))
        weights = self._samples[candidates].astype(np.float64)
        drawn = candidates[draws.sample(self._draws.next(candidates), weights, considered)]
        by_loss = np.argsort(-self._loss[drawn], kind="stable")
        return np.sort(drawn[by_loss[:count]])

    def observe(self, jobs: Jobs, scalars: Scalars) -> None:
        jobs, loss = reported(jobs, scalars, "loss")
        self._loss[jobs["client"]] = loss
