"""Dirichlet with equal sizes: each client fills its n/N places by class proportions from Dir(alpha).

FedClassAvg reports such a partition without its recipe; this one is edgefl's own. Clients are served
in random order, and where a class runs out, the client's other classes fill its places: the clients
served last take what is left, so their mixtures follow their proportions least.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from edgefl.core.params import Strict
from edgefl.data.partitions._deal import deal, equal_sizes, stock


class Params(Strict):
    """How unlike the clients are."""

    alpha: float = Field(0.5, gt=0, description="concentration; small is skewed, large is nearly IID")


def split(
    params: Params, labels: NDArray[np.int64], classes: int, clients: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Every sample goes to one client, and none is dropped; sizes differ by at most one.

    Raises:
        UserError: there are more clients than samples.
    """
    sizes = equal_sizes(len(labels), clients)
    left = stock(labels, classes)
    counts = np.zeros((clients, classes), dtype=np.int64)
    for client in rng.permutation(clients):
        wanted = rng.dirichlet(np.full(classes, params.alpha))
        counts[client] = _filled(wanted, int(sizes[client]), left, rng)
        left -= counts[client]
    return deal(labels, counts, rng)


def _filled(
    wanted: NDArray[np.float64], places: int, left: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """So many samples of each class for one client, at most what is ``left``."""
    taken = np.zeros_like(left)
    while places > taken.sum():  # each turn but the last uses up a class
        rest = left - taken
        share = np.where(rest > 0, wanted, 0.0)
        # A small alpha can leave the client's proportions without any class that is still there.
        share = share if share.sum() > 0 else rest.astype(np.float64)
        drawn = rng.multinomial(places - taken.sum(), share / share.sum())
        taken += np.minimum(drawn, rest)
    return taken
