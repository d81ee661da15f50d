"""The traces that clients' links follow."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import NamedTuple, TypeAlias

import numpy as np

from edgefl.core.link import Link, Rates
from edgefl.core.link_traces import WAYS
from edgefl.core.plan import Plan

_Lists: TypeAlias = tuple[list[float], list[float], list[float], float]
"""The columns of ``Rates``."""


class Piece(NamedTuple):
    """What a transfer meets now.

    Attributes:
        bps: the link's rate; 0 is an outage.
        delay_s: the handshakes of a transfer that begins.
        until_s: when that changes; infinite for never.
    """

    bps: float
    delay_s: float
    until_s: float


class ClientTrace:
    """One direction of the trace that a client's link follows, from the client's place in it on."""

    __slots__ = ("_bps", "_delay_s", "_length_s", "_offset_s", "_t_s")

    def __init__(self, rates: _Lists, offset_s: float) -> None:
        self._t_s, self._bps, self._delay_s, self._length_s = rates
        self._offset_s = offset_s

    def at(self, now_s: float) -> Piece:
        """What holds at a time."""
        within = now_s + self._offset_s
        base = 0.0 if math.isinf(self._length_s) else math.floor(within / self._length_s) * self._length_s
        place = max(0, bisect_right(self._t_s, within - base) - 1)
        while True:
            last = place + 1 == len(self._t_s)
            until_s = base + (self._length_s if last else self._t_s[place + 1]) - self._offset_s
            # So late that a turn of the trace is below the clock's resolution.
            is_late = base + self._length_s == base
            if until_s > now_s or is_late:
                until_s = max(until_s, math.nextafter(now_s, math.inf))
                return Piece(self._bps[place], self._delay_s[place], until_s)
            # A change that rounding has put before now.
            base, place = (base + self._length_s, 0) if last else (base, place + 1)


class ClientTraces:
    """The traces of a run's clients."""

    def __init__(self, plan: Plan) -> None:
        """From the run's seed."""
        clients = plan.clients
        # Of clients whose links change: the link, which of its traces, and where in it.
        self._dealt: dict[int, tuple[Link, int, float]] = {}
        for place, name in enumerate(clients.links):
            link = plan.fleet.links.get(name)
            if link is not None and link.trace is not None:
                mine = np.flatnonzero(clients.link == place)
                which, offset_s = link.dealt(plan.scenario.seed, mine)
                each = zip(mine.tolist(), which.tolist(), offset_s.tolist(), strict=True)
                self._dealt |= {client: (link, trace, offset) for client, trace, offset in each}
        self._rates: dict[tuple[int, int, int], _Lists] = {}

    def of(self, client: int, way: int) -> ClientTrace | None:
        """A client's trace in a direction, 0 for down and 1 for up; None if its link does not change."""
        dealt = self._dealt.get(client)
        if dealt is None:
            return None
        link, which, offset_s = dealt
        key = id(link), which, way
        if key not in self._rates:
            self._rates[key] = _lists(link.rates(which, WAYS[way]))
        return ClientTrace(self._rates[key], offset_s)


def _lists(rates: Rates) -> _Lists:
    """Lists, which are quicker to look one number up in than arrays."""
    return rates.t_s.tolist(), rates.bps.tolist(), rates.delay_s.tolist(), rates.length_s
