"""The fluid model in exact fractions: flows with own caps, in cells below one server link.

Levels are found by inverting demand, cells first, not by filling. A flow gets the least of its cap, its
cell's level and the server's, and a cell asks the server for what its flows take without the others.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

# A float only where it is infinite.
Number = Fraction | float


@dataclass(frozen=True)
class Limits:
    """One direction's shared capacities: the server's, and each cell's."""

    server: Number = math.inf
    cells: tuple[Number, ...] = ()


@dataclass(frozen=True)
class Flow:
    """A flow in progress: its own cap, and its cell's number, or -1."""

    cap: Number
    cell: int = -1


def exact(value: float | Fraction) -> Number:
    """The value as a fraction, unless it is infinite."""
    return value if math.isinf(value) else Fraction(value)


def level(capacity: Number, stops: Sequence[Number]) -> Number:
    """The x at which all min(x, stop) add up to the capacity; infinity if the stops take no more."""
    ranked = sorted(stops)
    before = [Fraction(0), *accumulate(ranked)]
    if before[-1] <= capacity:
        return math.inf

    def demand(place: int) -> Number:
        return before[place] + (len(ranked) - place) * ranked[place]

    place = bisect_left(range(len(ranked)), capacity, key=demand)
    return (capacity - before[place]) / (len(ranked) - place)


def shares(limits: Limits, flows: Sequence[Flow]) -> list[Number]:
    """Each flow's max-min fair rate."""
    members: dict[int, list[Number]] = {}
    for flow in flows:
        members.setdefault(flow.cell, []).append(flow.cap)
    levels = {cell: level(limits.cells[cell], caps) for cell, caps in members.items() if cell >= 0}
    stops = [min(flow.cap, levels.get(flow.cell, math.inf)) for flow in flows]
    top = level(limits.server, stops)
    return [min(stop, top) for stop in stops]


@dataclass(frozen=True)
class Transfer:
    """Something to move."""

    begin: Fraction
    size: Fraction
    cap: Number
    cell: int = -1
    changes: tuple[tuple[Fraction, Number], ...] = ()
    broken_off: Number = math.inf

    def flow(self, now: Fraction) -> Flow:
        """What it is at a time."""
        past = [cap for when, cap in self.changes if when <= now]
        return Flow(past[-1] if past else self.cap, self.cell)


@dataclass(frozen=True)
class Moved:
    """When a transfer ended, infinity if never, and what it had moved by then."""

    end: Number
    amount: Fraction


def fluid(limits: Limits, transfers: Sequence[Transfer]) -> list[Moved]:
    """Moves all transfers from event to event: beginnings, ends, changes."""
    moved = [Fraction(0)] * len(transfers)
    ends: list[Number] = [math.inf] * len(transfers)
    left = set(range(len(transfers)))
    known = {one.begin for one in transfers} | {one.broken_off for one in transfers}
    known |= {when for one in transfers for when, _ in one.changes}
    now: Number = min(one.begin for one in transfers)
    while left:
        done = [one for one in left if now >= transfers[one].begin and _done(transfers[one], moved[one], now)]
        for one in done:
            left.remove(one)
            ends[one] = now
        active = [one for one in sorted(left) if transfers[one].begin <= now]
        rates = shares(limits, [transfers[one].flow(now) for one in active])
        missing = [transfers[one].size - moved[one] for one in active]
        soonest = [now + size / rate for size, rate in zip(missing, rates, strict=True) if rate]
        then = min([*soonest, *(when for when in known if when > now)], default=math.inf)
        if math.isinf(then):
            break
        for one, rate in zip(active, rates, strict=True):
            moved[one] += rate * (then - now)
        now = then
    return [Moved(end, amount) for end, amount in zip(ends, moved, strict=True)]


def _done(one: Transfer, moved: Fraction, now: Number) -> bool:
    return moved == one.size or now >= one.broken_off


@dataclass(frozen=True)
class Client:
    """What one does in a round: bits down and up, each with its own link's rate, and work between them.

    Each transfer begins with a delay.
    """

    down: Fraction
    down_cap: Number
    work: Fraction
    up: Fraction
    up_cap: Number
    cell: int = -1
    delay: Fraction = Fraction(0)


def downloads(clients: Sequence[Client]) -> list[Transfer]:
    """Theirs; the round begins at 0."""
    return [Transfer(one.delay, one.down, one.down_cap, one.cell) for one in clients]


def uploads(clients: Sequence[Client], received_at: Sequence[Number]) -> list[Transfer]:
    """Theirs, after downloads that ended at these times."""
    begun = [end + one.work + one.delay for end, one in zip(received_at, clients, strict=True)]
    return [Transfer(begin, one.up, one.up_cap, one.cell) for begin, one in zip(begun, clients, strict=True)]


def received(down: Limits, clients: Sequence[Client]) -> list[Number]:
    """When each client's download ends."""
    return [moved.end for moved in fluid(down, downloads(clients))]


def arrivals(down: Limits, up: Limits, clients: Sequence[Client]) -> list[Number]:
    """When each client's upload arrives."""
    return [moved.end for moved in fluid(up, uploads(clients, received(down, clients)))]
