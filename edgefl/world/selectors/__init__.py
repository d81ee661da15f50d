"""Who is asked, one file each: ``Params`` and ``build(params, world) -> Selector``.

A selector that reads what training reports says so at its file's top, ``READS = ("loss",)``. One that not
every fleet can serve has ``check(params, plan)``, which raises a ``UserError`` before the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from edgefl.core import draws
from edgefl.core.catalogue import load
from edgefl.core.clients import Floats, Ints
from edgefl.core.plan import Prices

if TYPE_CHECKING:
    from edgefl.world.world import World

Jobs: TypeAlias = np.ndarray[Any, np.dtype[np.void]]
"""Ended jobs, (n,), with the fields of a job's row."""

Scalars: TypeAlias = Mapping[int, Mapping[str, float]]
"""What training reported, by the number of the job; a job that was not trained is left out."""


@runtime_checkable
class Selector(Protocol):
    """Chooses clients.

    One that learns from what it chose has ``observe(jobs: Jobs, scalars: Scalars)``, too, which takes the
    jobs that ended since the last call.
    """

    def select(self, count: int, candidates: Ints) -> Ints:
        """``count`` different ones of more candidates, in the order of clients."""
        ...


def reads(name: str) -> tuple[str, ...]:
    """The scalars of training that a selector reads, such as ``("loss",)``."""
    found: tuple[str, ...] = getattr(load("selectors", name), "READS", ())
    return found


def scalar(jobs: Jobs, scalars: Scalars, name: str) -> Floats:
    """A scalar of each job, (n,); NaN where training reported none."""
    values = (scalars.get(job, {}).get(name, np.nan) for job in jobs["job"].tolist())
    return np.fromiter(values, dtype=np.float64, count=len(jobs))


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
        """Starts before the first selection."""
        self._stream = draws.key(world.plan.scenario.seed, purpose)
        self._nth = -1

    def next(self, clients: Ints) -> Floats:
        """One draw from (0, 1) for each client, (n,)."""
        self._nth += 1
        drawn: Floats = draws.uniforms(self._stream, clients, self._nth, count=1)[0]
        return drawn
