"""Used by several partitions: giving each client a number of samples of each class."""

from __future__ import annotations

import numpy as np

from edgefl.core.arrays import Ints
from edgefl.core.errors import UserError


def deal(labels: Ints, counts: Ints, rng: np.random.Generator) -> list[Ints]:
    """Gives every client its count of each class, drawn at random; the rest is dropped.

    Args:
        labels: (n,).
        counts: (clients, C), columns summing to at most the class's samples.
        rng: which samples of a class go where.

    Returns:
        A sorted array of indices for each client; no index is in two of them.
    """
    clients = len(counts)
    owner = np.full(len(labels), clients)
    for label, column in enumerate(counts.T):
        members = rng.permutation(np.flatnonzero(labels == label))
        owner[members[: column.sum()]] = np.repeat(np.arange(clients), column)
    order = np.argsort(owner, kind="stable")
    return np.split(order, np.cumsum(counts.sum(axis=1)))[:clients]


def stock(labels: Ints, classes: int) -> Ints:
    """How many samples of each class there are, (C,)."""
    return np.bincount(labels, minlength=classes).astype(np.int64)


class TooFewError(UserError):
    """There are not enough samples for the clients."""


def equal_sizes(samples: int, clients: int) -> Ints:
    """Shares of ``samples`` that differ by at most one, the larger ones first."""
    share, rest = divmod(samples, clients)
    return np.full(clients, share, dtype=np.int64) + (np.arange(clients) < rest)
