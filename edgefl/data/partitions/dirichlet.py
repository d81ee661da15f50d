"""Dirichlet (LDA, non-IID): each class is split by proportions drawn from Dir(alpha); sizes differ.

The capped form that FedNTD, NIID-Bench, MOON and FedClassAvg share: a client that already holds n/N
samples gets none of the following classes, and everything is drawn again until the smallest client
holds ``min_samples``. The proportions of the remaining clients, rescaled to 1, follow a Dirichlet
distribution themselves, so they are drawn for those clients alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgefl.core.arrays import Ints
from edgefl.core.notes import note
from edgefl.data.partitions import Skewed, proportional

# Draws that are made one by one, and the most that follow many at a time: three seconds for 100 clients and
# ten classes.
_FEW, _MORE = 1000, 100_000
# Of larger fleets, the most proportions that are drawn: half a minute.
_MOST = 10**9
# Proportions of a class that are drawn at once, so that they stay in a cache.
_AT_ONCE = 2**15


class Params(Skewed):
    """How much the clients differ."""

    EQUAL = "dirichlet-equal"

    def draws(self, available: Ints, clients: int, rng: np.random.Generator) -> Iterator[Ints]:
        """Some one by one, then many at a time."""
        for _ in range(_FEW):
            yield _draw(self.alpha, available, clients, rng)[None]
        more = min(_MORE, max(1, _MOST // (clients * len(available))))
        note(f"task.partition: {_FEW:,} draws left a client with too few samples; up to {more:,} more follow")
        together = max(1, _AT_ONCE // clients)
        for start in range(0, more, together):
            yield _drawn(self.alpha, available, (min(together, more - start), clients), rng)


def _draw(alpha: float, available: Ints, clients: int, rng: np.random.Generator) -> Ints:
    """One draw of (clients, C) counts."""
    counts = np.zeros((clients, len(available)), dtype=np.int64)
    held = np.zeros(clients, dtype=np.int64)
    for label, samples in enumerate(available):
        still = np.flatnonzero(held * clients < available.sum())
        if not samples:
            continue
        counts[still, label] = proportional(samples, rng.dirichlet(np.full(len(still), alpha)))
        held += counts[:, label]
    return counts


def _drawn(alpha: float, available: Ints, shape: tuple[int, int], rng: np.random.Generator) -> Ints:
    """(draws, clients, C) counts, of a shape (draws, clients)."""
    counts = np.zeros((*shape, len(available)), dtype=np.int64)
    held = np.zeros(shape, dtype=np.int64)
    for label in np.flatnonzero(available):
        samples = int(available[label])
        # Gamma(alpha) is Gamma(alpha + 1) * U^(1 / alpha); by logarithms, as small alphas underflow.
        logs = np.log(rng.standard_gamma(alpha + 1, shape)) - rng.standard_exponential(shape) / alpha
        logs[held * shape[1] >= available.sum()] = -np.inf
        edges = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
        edges *= samples / edges[:, -1:]
        # The last is ``samples`` only up to rounding; clients behind the last that gets any share its edge.
        edges[edges == edges[:, -1:]] = samples
        counts[..., label] = np.diff(edges.astype(np.int64), axis=1, prepend=0)
        held += counts[..., label]
    return counts
