"""Dirichlet (LDA, non-IID): each class is split by proportions drawn from Dir(alpha); sizes differ.

The capped form that FedNTD, NIID-Bench, MOON and FedClassAvg share: a client that already holds n/N
samples gets none of the following classes, and everything is drawn again until the smallest client
holds ``min_samples``. The proportions of the remaining clients, rescaled to 1, follow a Dirichlet
distribution themselves, so they are drawn for those clients alone.
"""

import numpy as np

from edgefl.core.arrays import Ints
from edgefl.data.partitions import Skewed, proportional


class Params(Skewed):
    EQUAL = "dirichlet-equal"

    def draw(self, available: Ints, clients: int, rng: np.random.Generator) -> Ints:
        counts = np.zeros((clients, len(available)), dtype=np.int64)
        for label in np.flatnonzero(available):
            still = np.flatnonzero(counts.sum(axis=1) * clients < available.sum())
            proportions = rng.dirichlet(np.full(len(still), self.alpha))
            counts[still, label] = proportional(available[label], proportions)
        return counts
