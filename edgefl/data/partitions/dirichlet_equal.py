"""Dirichlet with equal sizes: each client fills its n/N places by class proportions from Dir(alpha).

FedClassAvg reports such a partition without describing it; this one is edgefl's own. Clients are served
in random order, and where a class runs out, the client's other classes fill its places: the clients
served last take the rest, so their mixtures follow their proportions least.
"""

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from edgefl.core.arrays import Ints
from edgefl.data.partitions import Partition, deal, equal_sizes


class Params(Partition):
    alpha: float = Field(0.5, gt=0, description="concentration; small is skewed, large is nearly IID")

    def split(self, labels: Ints, classes: int, clients: int, rng: np.random.Generator) -> list[Ints]:
        """Every sample goes to one client, and none is dropped; sizes differ by at most one."""
        sizes = equal_sizes(len(labels), clients)
        left = np.bincount(labels, minlength=classes)
        counts = np.zeros((clients, classes), dtype=np.int64)
        for client in rng.permutation(clients):
            proportions = rng.dirichlet(np.full(classes, self.alpha))
            counts[client] = _filled(proportions, int(sizes[client]), left, rng)
            left -= counts[client]
        return deal(labels, counts, rng)


def _filled(proportions: NDArray[np.float64], places: int, left: Ints, rng: np.random.Generator) -> Ints:
    """One client's samples of each class, at most what is ``left``."""
    taken = np.zeros_like(left)
    while places > taken.sum():  # each iteration but the last uses up a class
        rest = left - taken
        share = np.where(rest > 0, proportions, 0.0)
        # With a small alpha, all classes of the client's proportions may be used up.
        share = share if share.sum() > 0 else rest.astype(np.float64)
        drawn = rng.multinomial(places - taken.sum(), share / share.sum())
        taken += np.minimum(drawn, rest)
    return taken
