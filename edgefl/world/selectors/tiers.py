"""TiFL: a round asks clients of one tier of speed, drawn by how well it is learned (Chai et al. 2020).

Clients are profiled and cut into tiers of equal size by their times, the fastest first (Section 4.2). A round
draws a tier by the tiers' probabilities, among those that have credits left, pays with one of them, and asks
random clients of it (Algorithm 2). Every ``interval`` rounds, if the tier in use has not improved since the
last time, probabilities are set anew: a tier that is learned less gets more.

What the paper leaves open, or needs that a server here does not have:

- It evaluates each round's model on each tier's test data. Here a tier is learned as well as the mean of its
  clients' last training losses says, which costs nothing; a tier whose losses are unknown counts as learned
  least. Without training all probabilities stay equal.
- How probabilities follow from accuracies: with n tiers, the one learned least gets n parts, the next n - 1,
  the best 1.
- Credits are for the whole run; here, where a run may end by time or accuracy, all tiers get theirs again
  when all are spent. Their number and ``interval`` are assumed.
- Profiled times are the predicted ones. If too few clients of the tier are free, those of the nearest tiers
  are asked, the faster one first.
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from edgefl.core import draws
from edgefl.core.arrays import Floats, Ints
from edgefl.core.errors import ScenarioError
from edgefl.core.plan import Plan
from edgefl.world.selectors import Draws, Jobs, Scalars, Selector, SelectorParams, lowest, reported, round_s
from edgefl.world.world import World


class Params(SelectorParams):
    READS = ("loss",)

    tiers: Annotated[int, Field(gt=0, description="number of tiers; the paper's experiments have 5")] = 5
    interval: Annotated[int, Field(gt=0, description="rounds between changes of the probabilities")] = 10
    credits: Annotated[int, Field(gt=0, description="rounds a tier may be asked in, till all had them")] = 50

    def check(self, plan: Plan) -> None:
        clients = int(plan.clients.admitted.sum())
        if self.tiers > clients:
            raise ScenarioError(
                f"{self.tiers} tiers of {clients} clients: some would have none",
                where="server.selector.tiers",
                hint=f"choose at most {clients} tiers",
            )

    def build(self, world: World) -> Selector:
        return Tiers(self, world)


class Tiers(Selector):
    """The tiers, and what is known of them.

    Attributes:
        chances: each tier's probability, (tiers,).
        credits: each tier's, (tiers,).
    """

    def __init__(self, params: Params, world: World) -> None:
        self._params = params
        self._world = world
        self._draws = Draws(world, "tier members")
        self._loss = np.full(len(world.plan.clients), np.nan)
        self._tier = self._profiled()
        self._round: int | None = None
        self._current = 0
        self._before = np.full(params.tiers, np.nan)
        self.chances = np.full(params.tiers, 1 / params.tiers)
        self.credits = np.full(params.tiers, params.credits)

    def select(self, count: int, candidates: Ints) -> Ints:
        if self._world.round != self._round:
            self._round = self._world.round
            self._begin(self._round)
        away = self._tier[candidates] - self._current
        # Of two tiers equally far away, the faster one.
        rank = 2 * np.abs(away) + (away > 0)
        return lowest(rank + self._draws.next(candidates), candidates, count)

    def observe(self, jobs: Jobs, scalars: Scalars) -> None:
        jobs, loss = reported(jobs, scalars, "loss")
        self._loss[jobs["client"]] = loss

    def _profiled(self) -> Ints:
        """Each client's tier, 0 the fastest."""
        admitted = np.flatnonzero(self._world.plan.clients.admitted)
        by_time = admitted[np.argsort(round_s(self._world)[admitted], kind="stable")]
        tier = np.zeros(len(self._loss), dtype=np.int64)
        for number, members in enumerate(np.array_split(by_time, self._params.tiers)):
            tier[members] = number
        return tier

    def _begin(self, round_: int) -> None:
        """Draws a round's tier, after a change of the probabilities if one is due."""
        if round_ > 0 and round_ % self._params.interval == 0:
            losses = self._losses()
            if not losses[self._current] < self._before[self._current]:
                self.chances = _by_rank(losses)
            self._before = losses
        if not self.credits.any():
            self.credits[:] = self._params.credits
        chances = self.chances * (self.credits > 0)
        rng = draws.generator(self._world.plan.scenario.seed, "tier", nth=round_)
        self._current = int(rng.choice(len(chances), p=chances / chances.sum()))
        self.credits[self._current] -= 1

    def _losses(self) -> Floats:
        """Each tier's mean loss over the clients that reported one, (tiers,); NaN where none did."""
        known = ~np.isnan(self._loss)
        tiers = self._params.tiers
        counts = np.bincount(self._tier[known], minlength=tiers)
        sums = np.bincount(self._tier[known], weights=self._loss[known], minlength=tiers)
        means: Floats = np.divide(sums, counts, out=np.full(tiers, np.nan), where=counts > 0)
        return means


def _by_rank(losses: Floats) -> Floats:
    """Probabilities by rank: the highest loss gets as many parts as there are tiers, the lowest 1."""
    if np.isnan(losses).all():
        return np.full(len(losses), 1 / len(losses))
    # NumPy sorts NaN, the unknown ones, last.
    parts: Floats = np.empty(len(losses))
    parts[np.argsort(losses, kind="stable")] = np.arange(1, len(losses) + 1)
    parts /= parts.sum()
    return parts
