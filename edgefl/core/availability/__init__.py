"""Models of when clients are available, one file each."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
from pydantic import Field

from edgefl.core.arrays import Bools, Floats, Ints
from edgefl.core.clients import Clients
from edgefl.core.draws import derive, normals, uniform, uniforms
from edgefl.core.params import Component
from edgefl.core.units import Seconds

# Shorter means are mistakes, and would take for ever to go through.
Duration: TypeAlias = Annotated[Seconds, Field(ge=0.001)]
Zones: TypeAlias = Annotated[
    tuple[float, ...], Field(min_length=1, description="hours ahead of UTC; each client has one of them")
]
Start: TypeAlias = Annotated[float, Field(ge=0, lt=24, description="hour in UTC at which the run begins")]

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


class Spell(NamedTuple):
    """Whether each client is available, (n,), and until when, in seconds, (n,); inf is for ever."""

    available: Bools
    until_s: Floats


class Timetable(ABC):
    """When the clients of one run are available: answers depend on the client and the time alone."""

    @abstractmethod
    def at(self, clients: Ints, t_s: Floats) -> Spell:
        """Whether clients (n,) are available at times (n,), and until when, later, that surely holds."""

    def of_one(self, client: int, t_s: float) -> tuple[bool, float]:
        there, until_s = self.at(np.array([client]), np.array([t_s]))
        return bool(there[0]), float(until_s[0])


class Availability(Component):
    @abstractmethod
    def timetable(self, clients: Clients, root: int) -> Timetable:
        """The timetable of a run's clients, from the run's seed."""

    def start_h(self) -> float:
        """The hour in UTC at which runs begin."""
        return 0.0

    def assumptions(self, clients: Clients) -> tuple[str, ...]:  # noqa: ARG002
        """What the model assumes of the clients' devices, a line each, for tables."""
        return ()


# (clients (n,), t_s (n,)) -> the share of events at these times that are kept, (n,).
Thinning: TypeAlias = Callable[[Ints, Floats], Floats]
Kept: TypeAlias = tuple[Thinning | None, Thinning | None]

# Once in 30,000 years: so rare events never happen, and times stay small beside the number of windows.
_RARE_PER_S = 1e-12
# More events of a window, of at most 1.42 in the mean, than the draws' resolution of 2**-53 lets appear.
_MOST = 20


class Poisson:
    """One Poisson process for each client, at all times from minus to plus infinity, without being stored.

    Time is cut into windows, about one event long. The events of a client's window are hashes of the window's
    number (``edgefl.core.draws``): how many there are, by inversion of the Poisson distribution, and where
    each lies.
    """

    def __init__(self, root: int, purpose: str, per_s: Floats, kept: Thinning | None) -> None:
        """``per_s`` are the rates in events a second, (clients,); 0, as any below 1e-12, is never.

        With ``kept`` they vary: an event is kept with this probability (Lewis and Shedler 1979).
        """
        self.per_s = np.where(per_s < _RARE_PER_S, 0.0, per_s)
        self._kept = kept
        self._key = derive(root, purpose)
        self._streams = [derive(root, purpose, exchange=str(place)) for place in range(_MOST)]
        some = self.per_s > 0
        # Powers of two, so that t / window and window * number are exact and no event is lost on an edge.
        self._window_s = np.exp2(np.round(-np.log2(np.where(some, self.per_s, 1.0))))
        self._none = np.exp(-self.per_s * self._window_s)

    def nearest(self, clients: Ints, t_s: Floats, way: int) -> Floats:
        """Each one's last event at or before a time (``way`` -1), or first after it (1); else way * inf."""
        found = np.full(len(clients), way * np.inf)
        left = np.flatnonzero(self.per_s[clients] > 0)
        window = np.floor(t_s[left] / self._window_s[clients[left]]).astype(np.int64)
        nearer = np.minimum if way > 0 else np.maximum
        while len(left):
            for rows, times in self._events(clients[left], window):
                mine = (times > t_s[left[rows]]) == (way > 0)
                whose = left[rows[mine]]
                found[whose] = nearer(found[whose], times[mine])
            again = np.isinf(found[left])
            left, window = left[again], window[again] + way
        return found

    def nearest_of(self, client: int, t_s: float, way: int) -> float:
        """As ``nearest``, of one client, 20 times as fast as with arrays of one."""
        per_s, best = float(self.per_s[client]), way * math.inf
        if not per_s > 0:
            return best
        length_s, none = float(self._window_s[client]), float(self._none[client])
        window, mean = math.floor(t_s / length_s), per_s * length_s
        while not math.isfinite(best):
            drawn, term, below = uniform(self._key, client, window), none, none
            for place, stream in enumerate(self._streams):
                if drawn < below:
                    break
                term = term * mean / (place + 1)
                below += term
                event_s = (window + uniform(stream, client, window)) * length_s
                if (event_s > t_s) != (way > 0):
                    continue
                share = 1.0 if self._kept is None else self._kept(np.array([client]), np.array([event_s]))[0]
                if share >= 1 or uniform(stream, client, window, 1) < share:
                    best = min(best, event_s) if way > 0 else max(best, event_s)
            window += way
        return best

    def _events(self, clients: Ints, window: Ints) -> Iterator[tuple[Ints, Floats]]:
        """The events of a window of each client: the rows that have a first, a second ..., and when."""
        rows, drawn = np.arange(len(clients)), uniforms(self._key, clients, window, count=1)[0]
        mean = self.per_s[clients] * self._window_s[clients]
        term = below = self._none[clients]
        for place, stream in enumerate(self._streams):
            rows = rows[drawn[rows] >= below[rows]]
            if not len(rows):
                return
            term = term * mean / (place + 1)
            below = below + term
            whom = clients[rows]
            lies = uniforms(stream, whom, window[rows], count=1 if self._kept is None else 2)
            times = (window[rows] + lies[0]) * self._window_s[whom]
            kept = np.ones(len(rows), dtype=bool) if self._kept is None else lies[1] < self._kept(whom, times)
            yield rows[kept], times[kept]


class OnOff(Timetable):
    """Two Poisson processes a client: the events of one make it available, those of the other unavailable.

    With constant rates this is the two-state Markov chain with exponential durations of means 1 / ``leaves``
    and 1 / ``comes``, stationary from the start.
    """

    def __init__(
        self, root: int, comes: Floats, leaves: Floats, kept: Kept = (None, None), purpose: str = "available"
    ) -> None:
        """Rates are in events a second, (clients,), and vary with ``kept``, see ``Poisson``.

        ``purpose`` keeps the draws of several such timetables apart.
        """
        self._comes = Poisson(root, f"{purpose} from", comes, kept[0])
        self._leaves = Poisson(root, f"{purpose} until", leaves, kept[1])

    def at(self, clients: Ints, t_s: Floats) -> Spell:
        came, left = self._comes.nearest(clients, t_s, -1), self._leaves.nearest(clients, t_s, -1)
        available = came > left
        until = np.empty(len(clients))
        for process, ends in ((self._leaves, available), (self._comes, ~available)):
            until[ends] = process.nearest(clients[ends], t_s[ends], 1)
        return Spell(available, until)

    def of_one(self, client: int, t_s: float) -> tuple[bool, float]:
        there = self._comes.nearest_of(client, t_s, -1) > self._leaves.nearest_of(client, t_s, -1)
        return there, (self._leaves if there else self._comes).nearest_of(client, t_s, 1)


class ByShare(Availability):
    """Each client is available for a share of the time of its own.

    Its state is drawn anew at the events of a Poisson process, and its correlation with itself falls as
    exp(-t / ``correlation``).
    """

    highest: float = Field(1.0, gt=0, le=1, description="share of time of the client that is there most")
    correlation: Duration = Field(HOUR_S, description="mean time until a state is drawn anew")

    @abstractmethod
    def relative(self, clients: Clients, root: int) -> Floats:
        """Each client's share over the highest, (clients,)."""

    def timetable(self, clients: Clients, root: int) -> OnOff:
        share = self.highest * self.relative(clients, root)
        return OnOff(root, comes=share / self.correlation, leaves=(1 - share) / self.correlation)


def relative_lognormal(root: int, clients: int, sigma: float) -> Floats:
    """A persistent factor for each client, lognormal over the largest (Ribero et al. 2022), (clients,)."""
    drawn = np.exp(sigma * normals(uniforms(derive(root, "availability"), np.arange(clients))))
    return drawn / drawn.max()


def zones_of(zones: tuple[float, ...], root: int, clients: int) -> Floats:
    """Each client's time zone in hours, (clients,): one of ``zones``, all equally likely."""
    uniform = uniforms(derive(root, "zone"), np.arange(clients), count=1)[0]
    return np.array(zones, dtype=np.float64)[(uniform * len(zones)).astype(np.int64)]
