"""Fleets: the clients' devices and links, and how much their speeds vary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, SerializeAsAny

from edgefl.core import catalogue
from edgefl.core.devices import DType
from edgefl.core.errors import UserError
from edgefl.core.link import Link
from edgefl.core.named import ByName
from edgefl.core.params import Positive, Strict
from edgefl.core.samplers import Sampler
from edgefl.core.samplers.fixed import Params as Fixed
from edgefl.core.yamls import Document, plain

AnySampler = Annotated[SerializeAsAny[Sampler], ByName("samplers")]


class Member(Strict):
    """One kind of client in a fleet.

    Attributes:
        device: a device's name.
        share: its weight among the members; clients are assigned in these proportions.
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
        title: its display name.
        members: the kinds of clients and their shares.
        links: the fleet's own links, by name.
        slowdown: one persistent multiplier of compute time for each client (stragglers).
        jitter: another for each job.
        notes: remarks for users.
    """

    title: str = ""
    members: Annotated[tuple[Member, ...], Field(min_length=1)]
    links: dict[str, Link] = Field({})
    slowdown: AnySampler = Fixed()
    jitter: AnySampler = Fixed()
    notes: str = ""

    def deal(self, clients: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Each client's member index: shares by largest remainder, then shuffled."""
        # Exact fractions: of equal remainders, the member listed first gets the client.
        shares = [Fraction(member.share) for member in self.members]
        exact = [share * clients / sum(shares) for share in shares]
        counts = [math.floor(count) for count in exact]
        by_remainder = sorted(range(len(shares)), key=lambda index: counts[index] - exact[index])
        for index in by_remainder[: clients - sum(counts)]:
            counts[index] += 1
        return rng.permutation(np.repeat(np.arange(len(shares), dtype=np.int64), counts))


def inherited(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A fleet's data merged over the profile that it names under "like".

    Args:
        data: a fleet as plain data.
        where: its place, for messages.

    Raises:
        UserError: the profile is unknown or not valid YAML, or profiles inherit from each other in a cycle.
    """
    layers = [dict(data)]
    below: list[str] = []
    while (parent := layers[-1].pop("like", None)) is not None:
        name = str(parent)
        if name in below:
            raise UserError(
                f"profiles inherit from each other in a cycle: {' -> '.join([*below, name])}", where=where
            )
        below.append(name)
        document = Document.read(catalogue.find("profiles", name, where=where).path)
        where = document.file
        layers.append(plain(document.data))
    return {key: value for layer in reversed(layers) for key, value in layer.items()}
