"""Fleets: which devices clients have, behind which links, how they differ and how they jitter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from edgefl.core import catalogue
from edgefl.core.devices import DType
from edgefl.core.errors import UserError
from edgefl.core.link import Link
from edgefl.core.params import Strict
from edgefl.core.yamls import Document, plain

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]


class _Sampler(Strict):
    """A distribution of multipliers of compute time; 1 is the device as its file describes it."""


class Fixed(_Sampler):
    """Every draw is ``value``."""

    name: Literal["fixed"] = "fixed"
    value: Positive = 1.0

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray[Any, np.dtype[np.float64]]:  # noqa: ARG002
        """``size`` times ``value``."""
        return np.full(size, self.value)


class LogNormal(_Sampler):
    """exp(N(mu, sigma)); mean exp(mu + sigma**2 / 2). FedScale's speeds have mu 1, sigma 0.6."""

    name: Literal["lognormal"]
    mu: float = 0.0
    sigma: NonNegative

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Multipliers whose logarithm is normal."""
        return rng.lognormal(self.mu, self.sigma, size)


class HalfNormal(_Sampler):
    """minimum + |N(0, scale)|; mean minimum + scale * sqrt(2 / pi). The delay of FLSim and FedBuff."""

    name: Literal["half-normal"]
    minimum: Positive = 1.0
    scale: NonNegative

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Multipliers from ``minimum`` up."""
        return self.minimum + np.abs(rng.normal(0.0, self.scale, size))


class Uniform(_Sampler):
    """Uniform between ``low`` and ``high``."""

    name: Literal["uniform"]
    low: Positive
    high: Positive

    @model_validator(mode="after")
    def _ordered(self) -> Uniform:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Multipliers in [low, high)."""
        return rng.uniform(self.low, self.high, size)


class ShiftedExponential(_Sampler):
    """minimum + Exp(mean ``scale``); mean minimum + scale (Lee 2018)."""

    name: Literal["shifted-exponential"]
    minimum: Positive = 1.0
    scale: Positive

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Multipliers from ``minimum`` up."""
        return self.minimum + rng.exponential(self.scale, size)


class Pareto(_Sampler):
    """Pareto with the given minimum and tail index; the mean is infinite up to tail 1. A stress test."""

    name: Literal["pareto"]
    minimum: Positive = 1.0
    tail: Positive

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Multipliers from ``minimum`` up."""
        return self.minimum * (1.0 + rng.pareto(self.tail, size))


Sampler = Annotated[
    Fixed | LogNormal | HalfNormal | Uniform | ShiftedExponential | Pareto, Field(discriminator="name")
]


class Member(Strict):
    """One kind of client in a fleet.

    Attributes:
        device: a device's name.
        share: its weight among the members; clients are dealt out in these proportions.
        link: the name of one of the fleet's links, or of a network class (``edgefl list links``).
        dtype: the number type that the device trains in, as far as its costs go; the learning itself is fp32.
    """

    device: str
    share: Positive = 1.0
    link: str
    dtype: DType = "fp32"


class Fleet(Strict):
    """A fleet of clients.

    Attributes:
        title: its name for people.
        members: the kinds of clients and their shares.
        links: connections of its own, by name.
        slowdown: one persistent multiplier of compute time for each client (stragglers).
        jitter: another for each job.
        notes: what a user should know.
    """

    title: str = ""
    members: Annotated[tuple[Member, ...], Field(min_length=1)]
    links: dict[str, Link] = Field({})
    slowdown: Sampler = Fixed()
    jitter: Sampler = Fixed()
    notes: str = ""

    def deal(self, clients: int, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Which member each client is: shares by largest remainder, then shuffled."""
        # Fractions, so that equal remainders are equal: of those the member named first gets the client.
        shares = [Fraction(member.share) for member in self.members]
        exact = [share * clients / sum(shares) for share in shares]
        counts = [math.floor(count) for count in exact]
        by_remainder = sorted(range(len(shares)), key=lambda index: counts[index] - exact[index])
        for index in by_remainder[: clients - sum(counts)]:
            counts[index] += 1
        return rng.permutation(np.repeat(np.arange(len(shares), dtype=np.int64), counts))


def inherited(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A fleet's data on top of the profile it names under "like", which it need not repeat.

    Args:
        data: a fleet as plain data.
        where: its place, for messages.

    Raises:
        UserError: no profile has that name, its file is no YAML, or profiles name each other in a circle.
    """
    layers = [dict(data)]
    below: list[str] = []
    while (parent := layers[-1].pop("like", None)) is not None:
        name = str(parent)
        if name in below:
            raise UserError(
                f"profiles stand on each other in a circle: {' -> '.join([*below, name])}", where=where
            )
        below.append(name)
        document = Document.read(catalogue.find("profiles", name, where=where).path)
        where = document.file
        layers.append(plain(document.data))
    return {key: value for layer in reversed(layers) for key, value in layer.items()}
