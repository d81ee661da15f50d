"""Models of when clients are available, one file each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
from pydantic import Field

from edgefl.core.arrays import Bools, Floats, Ints
from edgefl.core.clients import Clients
from edgefl.core.draws import key, normals, uniforms
from edgefl.core.params import Component
from edgefl.core.poisson import Poisson, Thinning
from edgefl.core.units import Seconds

# Shorter means are mistakes, and would take for ever to go through.
Duration: TypeAlias = Annotated[Seconds, Field(ge=0.001)]
Zones: TypeAlias = Annotated[
    tuple[float, ...], Field(min_length=1, description="hours ahead of UTC; each client has one of them")
]
Start: TypeAlias = Annotated[float, Field(ge=0, lt=24, description="hour in UTC at which the run begins")]
Highest: TypeAlias = Annotated[
    float, Field(gt=0, le=1, description="share of time of the client that is there most")
]

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


class Spell(NamedTuple):
    """Whether each client is available, (n,), and until when, in seconds, (n,); inf is for ever."""

    available: Bools
    until_s: Floats


class Timetable(ABC):
    """When the clients of one run are available.

    An answer depends on the client and the time alone: not on who else is asked for, how often, or in which
    order.
    """

    @abstractmethod
    def at(self, clients: Ints, t_s: Floats) -> Spell:
        """Whether clients (n,) are available at times (n,) in seconds; no state changes in [t, until).

        ``until`` is later than ``t``. The state may be the same afterwards.
        """

    def of_one(self, client: int, t_s: float) -> tuple[bool, float]:
        """``at`` of one client at one time."""
        there, until_s = self.at(np.array([client]), np.array([t_s]))
        return bool(there[0]), float(until_s[0])


class Availability(Component):
    """What every model has."""

    @abstractmethod
    def timetable(self, clients: Clients, root: int) -> Timetable:
        """The timetable of a run's clients, from the run's seed."""

    def start_h(self) -> float:
        """The time of day at which runs begin, in hours."""
        return 0.0

    def assumptions(self, clients: Clients) -> tuple[str, ...]:  # noqa: ARG002
        """What the model assumes of the clients' devices, a line each, for tables."""
        return ()


class OnOff(Timetable):
    """Clients that come and go at random times.

    Two Poisson processes a client: the events of one make it available, those of the other unavailable; its
    state is that of the last event. With constant rates this is the two-state Markov chain with exponential
    durations of means 1 / ``leaves`` and 1 / ``comes``, stationary from the start.
    """

    def __init__(
        self,
        root: int,
        *,
        comes: Floats,
        leaves: Floats,
        kept: tuple[Thinning, Thinning] | tuple[None, None] = (None, None),
        purpose: str = "available",
    ) -> None:
        """A chain for each client, of rates in events a second, (clients,).

        ``kept`` makes each of the rates vary in time, see ``Poisson``; ``purpose`` keeps the draws of several
        such timetables apart.
        """
        self._comes = Poisson(root, f"{purpose} from", comes, kept[0])
        self._leaves = Poisson(root, f"{purpose} until", leaves, kept[1])

    def at(self, clients: Ints, t_s: Floats) -> Spell:
        """See ``Timetable.at``; ``until_s`` is when the state changes."""
        came, left = self._comes.nearest(clients, t_s, -1), self._leaves.nearest(clients, t_s, -1)
        available = came > left
        until = np.empty(len(clients))
        for process, ends in ((self._leaves, available), (self._comes, ~available)):
            until[ends] = process.nearest(clients[ends], t_s[ends], 1)
        return Spell(available, until)

    def of_one(self, client: int, t_s: float) -> tuple[bool, float]:
        there = self._comes.nearest_of(client, t_s, -1) > self._leaves.nearest_of(client, t_s, -1)
        return there, (self._leaves if there else self._comes).nearest_of(client, t_s, 1)


def at_share(root: int, share: Floats, correlation_s: float) -> OnOff:
    """Clients that are each available for a share of the time, (clients,), from 0 to 1.

    A client is drawn anew at the events of a Poisson process of mean interval ``correlation_s``: the
    correlation of its state with itself falls as exp(-t / ``correlation_s``).
    """
    return OnOff(root, comes=share / correlation_s, leaves=(1 - share) / correlation_s)


def relative_lognormal(root: int, clients: int, sigma: float) -> Floats:
    """A persistent factor for each client, lognormal over the largest (Ribero et al. 2022), (clients,)."""
    drawn: Floats = np.exp(sigma * normals(uniforms(key(root, "availability"), np.arange(clients))))
    relative: Floats = drawn / drawn.max()
    return relative


def zones_of(zones: tuple[float, ...], root: int, clients: int) -> Floats:
    """Each client's time zone in hours, (clients,): one of ``zones``, all equally likely."""
    uniform = uniforms(key(root, "zone"), np.arange(clients), count=1)[0]
    of_each: Floats = np.array(zones, dtype=np.float64)[(uniform * len(zones)).astype(np.int64)]
    return of_each
