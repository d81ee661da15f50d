"""Dirichlet with equal sizes: each client fills its n/N places by class proportions from Dir(alpha).

FedClassAvg reports such a partition without describing it; this one is edgefl's own. Clients are served
in random order, and where a class runs out, the client's other classes fill its places: the clients
served last take the rest, so their mixtures follow their proportions least.
"""

import numpy as np
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
            while places := sizes[client] - counts[client].sum():  # each time but the last uses up a class
                share = np.where(left > 0, proportions, 0.0)
                # With a small alpha, all classes of the client's proportions may be used up.
                share = share if share.sum() > 0 else left.astype(np.float64)
                taken = np.minimum(rng.multinomial(places, share / share.sum()), left)
                counts[client] += taken
                left -= taken
        return deal(labels, counts, rng)
