"""Ways to split training data among clients, one file each, and what several of them use."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from pydantic import Field

from edgefl.core.arrays import Floats, Ints
from edgefl.core.errors import UserError
from edgefl.core.notes import note
from edgefl.core.params import Component


class Partition(Component):
    """The parameters of a partition; ``BY_USERS`` says that it is given samples' users in place of labels."""

    BY_USERS: ClassVar[bool] = False

    @abstractmethod
    def split(self, labels: Ints, classes: int, clients: int, rng: np.random.Generator) -> list[Ints]:
        """Each client's sorted indices into ``labels``, (n,): at least one, and none twice."""


class TooFewError(UserError):
    """There are not enough samples for the clients."""

    def __init__(self, labels: Ints, clients: int, what: str, hint: str) -> None:
        """``what`` each of the clients would get."""
        super().__init__(
            f"too few training samples ({len(labels)}) to give {clients} clients {what} each",
            where="task.partition",
            hint=hint,
        )


# The most draws, and of large fleets the most shares of a class that are drawn: about twenty seconds.
_MOST_DRAWS, _MOST_SHARES = 50_000, 10**8
# Draws after which whoever waits is told.
_FEW_DRAWS = 1000


class Skewed(Partition):
    """Clients of different sizes, drawn again until the smallest has ``min_samples``."""

    EQUAL: ClassVar[str]  # a partition that gives all equally many

    alpha: float = Field(0.5, gt=0, description="concentration; small is skewed, large is even")
    min_samples: int = Field(10, ge=1, description="draw again until every client has this many")

    @abstractmethod
    def draw(self, available: Ints, clients: int, rng: np.random.Generator) -> Ints:
        """Shares of all (C,) samples of each class, (clients, C)."""

    def split(self, labels: Ints, classes: int, clients: int, rng: np.random.Generator) -> list[Ints]:
        """Every sample goes to one client, and none is dropped; no good draw is a ``UserError``."""
        equal, least, best = f"task.partition={self.EQUAL} gives all equally many", self.min_samples, 0
        if clients * least > len(labels):
            hint = f"--set {equal}; or use fewer clients or a smaller min_samples"
            raise TooFewError(labels, clients, f"{least}", hint)
        most = min(_MOST_DRAWS, max(_FEW_DRAWS, _MOST_SHARES // (clients * classes)))
        available = np.bincount(labels, minlength=classes)
        for nth in range(most):
            counts = self.draw(available, clients, rng)
            if (smallest := int(counts.sum(axis=1).min())) >= least:
                return deal(labels, counts, rng)
            best = max(best, smallest)
            if nth == _FEW_DRAWS:
                note(f"task.partition: no draw of {nth:,} gave each client enough; up to {most:,} are made")
        lower = f", such as {best}, which a draw gave" if best else ""
        raise UserError(
            f"none of {most:,} draws with alpha {self.alpha:g} gave {clients} clients {least} samples each",
            where="task.partition",
            hint=f"use a larger alpha, fewer clients or a smaller min_samples{lower}; {equal}",
        )


def deal(labels: Ints, counts: Ints, rng: np.random.Generator) -> list[Ints]:
    """Gives every client its (clients, C) count of each class, drawn at random; the rest is dropped."""
    clients = len(counts)
    owner = np.full(len(labels), clients)
    for label, column in enumerate(counts.T):
        members = rng.permutation(np.flatnonzero(labels == label))
        owner[members[: column.sum()]] = np.repeat(np.arange(clients), column)
    return held(owner, clients)


def held(owner: Ints, clients: int) -> list[Ints]:
    """Each client's samples, sorted, of the owner of each; an owner that is no client's number is nobody."""
    order = np.argsort(owner, kind="stable")
    return np.split(order, np.cumsum(np.bincount(owner, minlength=clients)))[:clients]


def equal_sizes(samples: int, clients: int) -> Ints:
    """Shares of ``samples`` that differ by at most one, the larger ones first."""
    return (samples - 1 - np.arange(clients)) // clients + 1


def proportional(samples: np.int64, proportions: Floats) -> Ints:
    """Shares of ``samples``, rounded so that none is left."""
    edges = np.cumsum(proportions) * samples
    edges[-1] = samples  # the proportions sum to 1 only up to rounding
    return np.diff(edges.astype(np.int64), prepend=0).astype(np.int64, copy=False)
