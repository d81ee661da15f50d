"""Fleets: the clients' devices and links, how their speeds vary, when they are available, and what fails."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, SerializeAsAny, SerializerFunctionWrapHandler, model_serializer

from edgefl.core import catalogue
from edgefl.core.availability import Availability
from edgefl.core.availability.always import Params as Always
from edgefl.core.carbon import Carbon
from edgefl.core.devices import DType
from edgefl.core.errors import UserError
from edgefl.core.link import Link
from edgefl.core.named import ByName
from edgefl.core.nodes import Node
from edgefl.core.params import NameOf, NonNegative, Positive, Share, Strict
from edgefl.core.samplers import Sampler
from edgefl.core.samplers.fixed import Params as Fixed
from edgefl.core.speed import Speed
from edgefl.core.units import Seconds
from edgefl.core.yamls import Document

AnySampler = Annotated[SerializeAsAny[Sampler], ByName("samplers")]
AnyAvailability = Annotated[SerializeAsAny[Availability], ByName("availability")]
AnySpeed = Annotated[SerializeAsAny[Speed], ByName("speed")]


class Member(Strict):
    """One kind of client in a fleet.

    Attributes:
        device: a device's name.
        share: its weight among the members; clients are assigned in these proportions.
        link: the name of one of the fleet's links, or of a network class (``edgefl list links``).
        dtype: the number type that the device trains in, as far as its costs go; the learning itself is fp32.
    """

    device: Annotated[str, NameOf("devices")]
    share: Positive = 1.0
    link: Annotated[str, NameOf("links", own="links")]
    dtype: DType = "fp32"


class Failures(Strict):
    """What goes wrong with jobs.

    Attributes:
        crash: the probability that a job is lost, at some time of its work.
        crash_per_hour: the rate of crashes of a client that has a job, in crashes an hour; beside ``crash``.
        corrupt: the probability that an upload arrives with errors. A checksum finds them, and it is sent
            again.
        retries: how often an upload is sent again before its job is lost.
        timeout: the time after its dispatch at which the server gives a job up; null is never.
    """

    crash: Annotated[float, Field(ge=0, le=1)] = 0.0
    crash_per_hour: NonNegative = 0.0
    corrupt: Share = 0.0
    retries: Annotated[int, Field(ge=0, le=1000)] = 3
    timeout: Annotated[Seconds, Field(gt=0)] | None = None


# A fleet that leaves these out is written out without them.
_DYNAMICS = ("link", "availability", "on_leave", "speed", "failures", "carbon")


class Fleet(Strict):
    """A fleet of clients.

    Attributes:
        title: its display name.
        members: the kinds of clients and their shares.
        links: the fleet's own links, by name.
        link: the link of all members, in place of their own; null leaves them.
        slowdown: one persistent multiplier of compute time for each client (stragglers).
        jitter: another for each job.
        availability: when clients are available.
        on_leave: what becomes of a job whose client leaves: it is lost, pauses until the client is back, or
            is finished all the same.
        speed: what changes the speeds of clients in time; the factors are multiplied.
        failures: what goes wrong with jobs.
        carbon: what carbon emissions depend on; null leaves them out.
        notes: remarks for users.
    """

    title: str = ""
    members: Annotated[tuple[Member, ...], Field(min_length=1)]
    links: dict[str, Link] = Field({})
    link: str | None = None
    slowdown: AnySampler = Fixed()
    jitter: AnySampler = Fixed()
    availability: AnyAvailability = Always()
    on_leave: Literal["lose", "pause", "finish"] = "lose"
    speed: tuple[AnySpeed, ...] = ()
    failures: Failures = Failures()
    carbon: Carbon | None = None
    notes: str = ""

    @model_serializer(mode="wrap")
    def _short(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        default = {key for key in _DYNAMICS if getattr(self, key) == type(self).model_fields[key].default}
        return {key: value for key, value in written(self).items() if key not in default}

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


def inherited(fleet: Node, where: str) -> Node:
    """A fleet merged over the profile that it names under "like".

    Args:
        fleet: a mapping.
        where: its place, for messages.

    Raises:
        UserError: the profile is unknown or not valid YAML, or profiles inherit from each other in a cycle.
    """
    layers = [dict(fleet.value)]
    below: list[str] = []
    while (parent := layers[-1].pop("like", None)) is not None and parent.value is not None:
        name = str(parent.value)
        if name in below:
            raise UserError(
                f"profiles inherit from each other in a cycle: {' -> '.join([*below, name])}", where=where
            )
        below.append(name)
        path = catalogue.find("profiles", name, where=where).path
        where = str(path)
        layers.append(dict(Document.read(path).nodes.value))
    return fleet._replace(value={key: one for layer in reversed(layers) for key, one in layer.items()})
