"""Classes per client: each client draws k classes, and each class is split equally among its holders.

With k = 2 this is the two-class skew of the literature, whose code lets clients overlap; here they do
not.
"""

import numpy as np
from pydantic import Field

from edgefl.core.arrays import Ints
from edgefl.core.errors import UserError
from edgefl.data.partitions import Partition, TooFewError, deal, equal_sizes


class Params(Partition):
    k: int = Field(2, ge=1, description="classes per client, drawn without replacement")

    def split(self, labels: Ints, classes: int, clients: int, rng: np.random.Generator) -> list[Ints]:
        """Every client holds samples of at most k classes, at least one sample, and no sample goes to two.

        The holders' shares of a class differ by at most one. Classes that no client drew are dropped; of all
        others, every sample is used.
        """
        if self.k > classes:
            raise UserError(
                f"a client cannot hold {self.k} of {classes} classes",
                where="task.partition.k",
                hint="use a smaller k",
            )
        available = np.bincount(labels, minlength=classes)
        for _ in range(100):
            counts = _draw(self.k, available, clients, rng)
            if counts.any(axis=1).all():
                return deal(labels, counts, rng)
        raise TooFewError(labels, clients, "one of their classes", "use fewer clients, or a larger k")


def _draw(k: int, available: Ints, clients: int, rng: np.random.Generator) -> Ints:
    """One draw of (clients, C) counts."""
    classes = len(available)
    drawn = rng.permuted(np.tile(np.arange(classes), (clients, 1)), axis=1)[:, :k]
    counts = np.zeros((clients, classes), dtype=np.int64)
    for label, samples in enumerate(available):
        # Which holders get one of the remaining samples is random.
        holders = rng.permutation(np.flatnonzero((drawn == label).any(axis=1)))
        if len(holders):
            counts[holders, label] = equal_sizes(int(samples), len(holders))
    return counts
