"""Who is asked, one file each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from edgefl.core import draws
from edgefl.core.arrays import Floats, Ints
from edgefl.core.params import Component
from edgefl.core.plan import Plan, Prices

if TYPE_CHECKING:
    from edgefl.world.world import World

Jobs: TypeAlias = np.ndarray[Any, np.dtype[np.void]]
"""Ended jobs, (n,), with the fields of a job's row."""

Scalars: TypeAlias = Mapping[int, Mapping[str, float]]
"""What training reported, by the number of the job; a job that was not trained is left out."""


class Selector(ABC):
    """Chooses clients."""

    @abstractmethod
    def select(self, count: int, candidates: Ints) -> Ints:
        """``count`` different ones of more candidates, in the order of clients."""

    def cohort_places(self, count: int, candidates: int) -> Ints | None:  # noqa: ARG002 - most look at who they are
        """The places of those chosen among so many, if who they are does not matter; None if it does."""
        return None

    def observe(self, jobs: Jobs, scalars: Scalars) -> None:  # noqa: B027 - most do not learn
        """Learns of the jobs that ended since the last call, and of what training reported of them."""


class SelectorParams(Component):
    """The parameters of a selector.

    Attributes:
        BLIND: whether whom it chooses depends on no job's time or energy; see ``edgefl.world.blind``.
        READS: the scalars of training that it reads, such as ``("loss",)``.
    """

    BLIND: ClassVar[bool] = False
    READS: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def build(self, world: World) -> Selector:
        """The selector of a run."""

    def check(self, plan: Plan) -> None:
        """Refuses, before the run, a plan that it cannot serve; raises a ``UserError``."""


def reported(jobs: Jobs, scalars: Scalars, name: str) -> tuple[Jobs, Floats]:
    """The jobs of which training reported a scalar, and its values."""
    values = (scalars.get(job, {}).get(name, np.nan) for job in jobs["job"].tolist())
    found = np.fromiter(values, dtype=np.float64, count=len(jobs))
    known = ~np.isnan(found)
    return jobs[known], found[known]


def chooses(prices: Prices) -> bool:
    """Whether an exchange is one of rounds whose clients are chosen; the others are with all of them."""
    return prices.at == "round" and not prices.everyone


def round_s(world: World) -> Floats:
    """The seconds predicted of each client for a round's exchanges, (clients,); NaN if it was refused."""
    everyone = np.arange(len(world.plan.clients))
    total = np.zeros(len(everyone))
    for prices in [each for each in world.plan.prices if chooses(each)] or world.plan.prices:
        total += world.predicted_s(prices, everyone)
    return total


def lowest(values: Floats | Ints, clients: Ints, count: int) -> Ints:
    """The ``count`` clients of the lowest values, in their order; of equal values, the lower number is taken.

    Args:
        values: (n,).
        clients: their numbers, (n,), in any order.
        count: from 1 to n.
    """
    cut = np.partition(values, count - 1)[count - 1]
    below, level = clients[values < cut], clients[values == cut]
    left = count - len(below)
    return np.sort(np.concatenate([below, np.partition(level, left - 1)[:left]]))


class Draws:
    """Uniform draws for clients, new ones for each selection of a run."""

    def __init__(self, world: World, purpose: str) -> None:
        self._stream = draws.derive(world.plan.scenario.seed, purpose)
        self._nth = -1

    def next(self, clients: Ints) -> Floats:
        """One draw from (0, 1) for each client, (n,)."""
        self._nth += 1
        drawn: Floats = draws.uniforms(self._stream, clients, self._nth, count=1)[0]
        return drawn
