"""Size skew: clients differ in how many samples they have, by proportions drawn from Dir(alpha).

Quantity skew of NIID-Bench (Li et al. 2022, section IV-C): classes are mixed as they are in the whole. Drawn
again until the smallest client has ``min_samples``.
"""

import numpy as np

from edgefl.core.arrays import Ints
from edgefl.data.partitions import Skewed, proportional


class Params(Skewed):
    EQUAL = "iid"

    def split(self, labels: Ints, classes: int, clients: int, rng: np.random.Generator) -> list[Ints]:  # noqa: ARG002
        """As if all samples were of one class."""
        return super().split(np.zeros_like(labels), 1, clients, rng)

    def draw(self, available: Ints, clients: int, rng: np.random.Generator) -> Ints:
        return proportional(available[0], rng.dirichlet(np.full(clients, self.alpha)))[:, None]
