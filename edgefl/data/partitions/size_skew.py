"""Size skew: clients differ in how many samples they have, by proportions drawn from Dir(alpha).

Quantity skew of NIID-Bench (Li et al. 2022, section IV-C): classes are mixed as they are in the whole. Drawn
again until the smallest client has ``min_samples``.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from edgefl.core.arrays import Ints
from edgefl.core.errors import UserError
from edgefl.data.partitions import Partition
from edgefl.data.partitions._deal import TooFewError

_REDRAWS = 10_000


class Params(Partition):
    """How much the sizes differ."""

    alpha: float = Field(0.5, gt=0, description="concentration; small is skewed, large gives equal sizes")
    min_samples: int = Field(10, ge=1, description="draw again until every client has this many")

    def split(self, labels: Ints, classes: int, clients: int, rng: np.random.Generator) -> list[Ints]:  # noqa: ARG002
        """Every sample goes to one client, and none is dropped.

        Raises:
            UserError: the samples are too few for ``min_samples`` each, or no draw gave every client as many.
        """
        samples = len(labels)
        if clients * self.min_samples > samples:
            what = f"too few training samples ({samples}) to give {clients} clients {self.min_samples} each"
            raise TooFewError(what, where="task.partition", hint="use fewer clients or a smaller min_samples")
        for _ in range(_REDRAWS):
            edges = (np.cumsum(rng.dirichlet(np.full(clients, self.alpha))) * samples).astype(np.int64)
            edges[-1] = samples  # the proportions sum to 1 only up to rounding
            if np.diff(edges, prepend=0).min() >= self.min_samples:
                return [np.sort(part) for part in np.split(rng.permutation(samples), edges[:-1])]
        raise UserError(
            f"none of {_REDRAWS:,} draws with alpha {self.alpha:g} gave each of {clients} clients "
            f"{self.min_samples} samples",
            where="task.partition",
            hint="use a larger alpha, fewer clients or a smaller min_samples",
        )
