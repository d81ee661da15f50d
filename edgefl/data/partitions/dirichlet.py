"""Dirichlet (LDA, non-IID): each class is split by proportions drawn from Dir(alpha); sizes differ.

The capped form that FedNTD, NIID-Bench, MOON and FedClassAvg share: a client that already holds n/N
samples gets none of the following classes, and everything is drawn again until the smallest client
holds ``min_samples``. The proportions of the remaining clients, rescaled to 1, follow a Dirichlet
distribution themselves, so they are drawn for those clients alone.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from edgefl.core.clients import Ints
from edgefl.core.errors import UserError
from edgefl.data.partitions import Partition
from edgefl.data.partitions._deal import deal, stock, too_few

# Four seconds for 100 clients and ten classes.
_DRAWS = 3_000


class Params(Partition):
    """How much the clients differ."""

    alpha: float = Field(0.5, gt=0, description="concentration; small is skewed, large is nearly IID")
    min_samples: int = Field(10, ge=1, description="draw again until every client has this many")

    def split(self, labels: Ints, classes: int, clients: int, rng: np.random.Generator) -> list[Ints]:
        """Every sample goes to one client, and none is dropped.

        Raises:
            UserError: the samples are too few for ``min_samples`` each, or no draw gave every client as many.
        """
        if clients * self.min_samples > len(labels):
            what = (
                f"too few training samples ({len(labels)}) to give {clients} clients {self.min_samples} each"
            )
            hint = "--set task.partition=dirichlet-equal gives all equally many; or use a smaller min_samples"
            raise too_few(what, len(labels), clients, "task.partition", hint)
        available, best = stock(labels, classes), 0
        for _ in range(_DRAWS):
            counts = _draw(self.alpha, available, clients, rng)
            smallest = int(counts.sum(axis=1).min())
            if smallest >= self.min_samples:
                return deal(labels, counts, rng)
            best = max(best, smallest)
        lower = f", such as {best}, which a draw gave" if best else ""
        raise UserError(
            f"none of {_DRAWS:,} draws with alpha {self.alpha:g} gave each of {clients} clients "
            f"{self.min_samples} samples",
            where="task.partition",
            hint=f"use a larger alpha, fewer clients or a smaller min_samples{lower}; the partition "
            "dirichlet_equal gives all clients equally many samples",
        )


def _draw(alpha: float, available: Ints, clients: int, rng: np.random.Generator) -> Ints:
    """One draw of (clients, C) counts."""
    counts = np.zeros((clients, len(available)), dtype=np.int64)
    held = np.zeros(clients, dtype=np.int64)
    for label, samples in enumerate(available):
        still = np.flatnonzero(held * clients < available.sum())
        if not samples:
            continue
        edges = np.cumsum(rng.dirichlet(np.full(len(still), alpha))) * samples
        edges[-1] = samples  # the proportions sum to 1 only up to rounding
        counts[still, label] = np.diff(edges.astype(np.int64), prepend=0)
        held += counts[:, label]
    return counts
