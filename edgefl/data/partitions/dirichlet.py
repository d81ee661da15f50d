"""Dirichlet (LDA, non-IID): each class is split by proportions drawn from Dir(alpha); sizes differ.

The capped form that FedNTD, NIID-Bench, MOON and FedClassAvg share: a client that already holds n/N
samples gets none of the following classes, and everything is drawn again until the smallest client
holds ``min_samples``. The proportions of the remaining clients, rescaled to 1, follow a Dirichlet
distribution themselves, so they are drawn for those clients alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from edgefl.core.arrays import Ints
from edgefl.core.errors import UserError
from edgefl.core.notes import note
from edgefl.data.partitions import Partition
from edgefl.data.partitions._deal import TooFewError, deal, stock

# Draws that are made one by one, and the most that follow many at a time: three seconds for 100 clients and
# ten classes.
_FEW, _MORE = 1000, 100_000
# Of larger fleets, the most proportions that are drawn: half a minute.
_MOST = 10**9
# Proportions of a class that are drawn at once, so that they stay in a cache.
_AT_ONCE = 2**15


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
            raise TooFewError(what, where="task.partition", hint=hint)
        available, made, best = stock(labels, classes), 0, 0
        for counts in _draws(self.alpha, available, clients, rng):
            smallest = counts.sum(axis=2).min(axis=1)
            enough = np.flatnonzero(smallest >= self.min_samples)
            if len(enough):
                return deal(labels, counts[enough[0]], rng)
            made, best = made + len(counts), max(best, int(smallest.max()))
        lower = f", such as {best}, which a draw gave" if best else ""
        raise UserError(
            f"none of {made:,} draws with alpha {self.alpha:g} gave each of {clients} clients "
            f"{self.min_samples} samples",
            where="task.partition",
            hint=f"use a larger alpha, fewer clients or a smaller min_samples{lower}; the partition "
            "dirichlet_equal gives all clients equally many samples",
        )


def _draws(alpha: float, available: Ints, clients: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Draws of counts, (draws, clients, C)."""
    for _ in range(_FEW):
        yield _draw(alpha, available, clients, rng)[None]
    more = min(_MORE, max(1, _MOST // (clients * len(available))))
    note(f"task.partition: {_FEW:,} draws left a client with too few samples; up to {more:,} more follow")
    together = max(1, _AT_ONCE // clients)
    for start in range(0, more, together):
        yield _drawn(alpha, available, (min(together, more - start), clients), rng)


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
