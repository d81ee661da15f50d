"""Dirichlet (LDA): each class is split by proportions drawn from Dir(alpha); sizes differ.

The capped form that FedNTD, NIID-Bench, MOON and FedClassAvg share: a client that already holds n/N
samples gets none of the following classes, and everything is drawn again until the smallest client
holds ``min_samples``. The proportions of the remaining clients, rescaled to 1, follow a Dirichlet
distribution themselves, so they are drawn for those clients alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from edgefl.core.errors import UserError
from edgefl.core.params import Strict
from edgefl.data.partitions._deal import deal, stock

_REDRAWS = 1000


class Params(Strict):
    """How much the clients differ."""

    alpha: float = Field(0.5, gt=0, description="concentration; small is skewed, large is nearly IID")
    min_samples: int = Field(10, ge=1, description="draw again until every client has this many")


def split(
    params: Params, labels: NDArray[np.int64], classes: int, clients: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Every sample goes to one client, and none is dropped.

    Raises:
        UserError: the samples are too few for ``min_samples`` each, or a thousand draws gave no partition in
            which every client has as many.
    """
    if clients * params.min_samples > len(labels):
        raise UserError(
            f"too few training samples ({len(labels)}) to give {clients} clients {params.min_samples} each",
            where="task.partition",
            hint="use fewer clients or a smaller min_samples",
        )
    available = stock(labels, classes)
    for _ in range(_REDRAWS):
        counts = _draw(params.alpha, available, clients, rng)
        if counts.sum(axis=1).min() >= params.min_samples:
            return deal(labels, counts, rng)
    raise UserError(
        f"none of {_REDRAWS} draws with alpha {params.alpha:g} gave each of {clients} clients "
        f"{params.min_samples} samples",
        where="task.partition",
        hint="use a larger alpha, fewer clients or a smaller min_samples",
    )


def _draw(
    alpha: float, available: NDArray[np.int64], clients: int, rng: np.random.Generator
) -> NDArray[np.int64]:
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
