"""Fleets: the clients' devices and links, how their speeds vary, when they are available, and what fails."""

from typing import Annotated, Any, Literal

from pydantic import Field, ModelWrapValidatorHandler, SerializeAsAny, model_validator

from edgefl.core.availability import Availability
from edgefl.core.availability.always import Params as Always
from edgefl.core.availability.intervals import Params as Intervals
from edgefl.core.components import NameOf, OfKind, own_links
from edgefl.core.devices import DType
from edgefl.core.errors import nearest
from edgefl.core.link import Link, Rate
from edgefl.core.params import NonNegative, Positive, Share, Strict, unless
from edgefl.core.samplers import Sampler
from edgefl.core.samplers.fixed import Params as Fixed
from edgefl.core.sourced import NEEDED, Sourced
from edgefl.core.speed import Speed
from edgefl.core.units import Seconds
from edgefl.core.users import Users
from edgefl.core.validation import item_at

AnySampler = Annotated[SerializeAsAny[Sampler], OfKind("samplers")]


class FleetMember(Strict):
    """One kind of client in a fleet.

    Attributes:
        share: its weight among the members; clients are assigned in these proportions.
        link: the name of one of the fleet's links, or of a network class (``edgefl list links``).
        dtype: the number type that the device computes in, for its costs alone: ``fp16`` has its own peak,
            and half the traffic and memory. Training stays in fp32.
        cell: the name of one of the fleet's cells; null for none.
    """

    device: Annotated[str, NameOf("devices")]
    share: Positive = 1.0
    link: Annotated[str, NameOf("links")]
    dtype: DType = "fp32"
    cell: Annotated[str | None, unless(None)] = None


class Cell(Strict):
    """What a few clients share between their own links and the server's: a home's access, a base station.

    Attributes:
        down: the rate towards its clients, together.
        up: the rate from its clients, together.
        clients: how many share one such cell; the last one may have fewer.
    """

    title: str = ""
    down: Annotated[Sourced[Rate], NEEDED]
    up: Annotated[Sourced[Rate], NEEDED]
    clients: Annotated[int, Field(gt=0)]
    notes: str = ""


class Failures(Strict):
    """What goes wrong with jobs.

    Attributes:
        crash: the probability that a job is lost, at some time of its work.
        crash_per_hour: crashes an hour of a client that has a job, beside ``crash``.
        corrupt: the probability that an upload arrives with errors. A checksum finds them, and it is sent
            again.
        retries: how often an upload is sent again before its job is lost.
        timeout: the time after its dispatch at which the server gives a job up; null for never.
    """

    crash: Annotated[float, Field(ge=0, le=1)] = 0.0
    crash_per_hour: NonNegative = 0.0
    corrupt: Share = 0.0
    retries: Annotated[int, Field(ge=0, le=1000)] = 3
    timeout: Annotated[Seconds, Field(gt=0)] | None = None


class Fleet(Strict):
    """A fleet of clients.

    Attributes:
        title: a label.
        members: the kinds of clients and their shares.
        links: the fleet's own links, by name, beside those of ``edgefl list links``.
        cells: what clients share between their links and the server, by name.
        users: recorded users, whose devices, links, slowdowns and availability clients have in place of those
            of members; null for none.
        link: one link for all, in place of members' and of users'; ``--link NAME`` sets it.
        slowdown: a sampler of a multiplier of compute time, one a client for the whole run (stragglers).
        jitter: a sampler of another for each job.
        availability: when clients are available; ``edgefl list availability``.
        on_leave: what becomes of a job whose client leaves: ``lose`` it, ``pause`` it until the client is
            back, ``finish`` it as if the client were there, or ``check-at-end``: finish it, and lose it if
            the client is away when its upload arrives.
        speed: a list of what slows clients down in time, whose factors are multiplied; ``edgefl list speed``.
        failures: what goes wrong with jobs.
        carbon: what emissions depend on, which planning reads (``planning.carbon``); null leaves them out.
        notes: free text.
    """

    title: str = ""
    members: Annotated[tuple[FleetMember, ...], Field(min_length=1)]
    links: dict[str, Link] = Field({})
    cells: Annotated[dict[str, Cell], unless({})] = Field({})
    users: Annotated[Users | None, unless(None)] = None
    link: Annotated[str | None, unless(None)] = None
    slowdown: AnySampler = Fixed()
    jitter: AnySampler = Fixed()
    availability: Annotated[SerializeAsAny[Availability], OfKind("availability"), unless(Always())] = Always()
    on_leave: Annotated[Literal["lose", "pause", "finish", "check-at-end"], unless("lose")] = "lose"
    speed: Annotated[tuple[Annotated[SerializeAsAny[Speed], OfKind("speed")], ...], unless(())] = ()
    failures: Annotated[Failures, unless(Failures())] = Failures()
    carbon: Annotated[dict[str, Any] | None, unless(None)] = None
    notes: str = ""

    @model_validator(mode="wrap")
    @classmethod
    def _has_links(cls, value: Any, handler: "ModelWrapValidatorHandler[Fleet]") -> "Fleet":
        with own_links(item_at(value, ["links"])):
            return handler(value)

    @model_validator(mode="after")
    def _cells_are_known(self) -> "Fleet":
        for member in self.members:
            if member.cell is not None and member.cell not in self.cells:
                hint = nearest(member.cell, self.cells, "" if self.cells else "give it under 'cells'")
                raise ValueError(f"unknown cell {member.cell!r}; {hint}")
        return self

    @model_validator(mode="after")
    def _users_go_with_it(self) -> "Fleet":
        columns = () if self.users is None else self.users.table().columns
        if "slowdown" in columns and self.slowdown != Fixed():
            raise ValueError("the users have slowdowns of their own; remove the fleet's 'slowdown'")
        if "availability" in columns and not isinstance(self.availability, Intervals):
            given = self.availability.name
            raise ValueError(f"the users' availability needs intervals, but the fleet's is {given!r}")
        return self
