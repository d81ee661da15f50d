"""When clients were away, from the plan's availability and what their jobs took from their batteries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from edgefl.analysis.run import Floats, Ints
from edgefl.core.availability import BatteryTimetable, Timetable
from edgefl.core.availability.always import Params as Always
from edgefl.core.event import JOULES
from edgefl.core.plan import Plan
from edgefl.store import Reader

MOST_INTERVALS = 500_000
"""More are not shown."""

_TAKEN = " + ".join(f"IFNULL({name}, 0)" for name in JOULES if not name.endswith("idle_j"))


class Away(NamedTuple):
    """Intervals in which clients were away, columns (n,) by client and time.

    Attributes:
        client: whose.
        from_s, to_s: virtual seconds; intervals of one client do not touch.
    """

    client: Ints
    from_s: Floats
    to_s: Floats


class TooManyError(Exception):
    """There are more than ``MOST_INTERVALS``."""


def away_of(plan: Plan, reader: Reader, clients: Ints, from_s: float, to_s: float) -> Away | None:
    """When some clients were away in a span of virtual time; None where clients are always there.

    What jobs take from batteries is taken where they end, as in the run.

    Raises:
        TooManyError: there are too many intervals.
        UserError: the run is damaged.
    """
    if isinstance(plan.fleet.availability, Always):
        return None
    timetable = plan.fleet.availability.timetable(plan.clients, plan.scenario.seed)
    if isinstance(timetable, BatteryTimetable):
        found = _drained(timetable, reader, clients, from_s, to_s)
    else:
        starts, ends = np.full(len(clients), from_s), np.full(len(clients), to_s)
        found = _walked(timetable, clients, starts, ends)
    pieces, count = [Away(clients[:0], np.zeros(0), np.zeros(0))], 0
    for piece in found:
        pieces.append(piece)
        count += len(piece.client)
        if count > MOST_INTERVALS:
            raise TooManyError
    return _joined(pieces)


def _walked(timetable: Timetable, clients: Ints, t_s: Floats, to_s: Floats) -> Iterator[Away]:
    """The times that clients are away, one interval of each at a time."""
    at = t_s < to_s
    clients, t_s, to_s = clients[at], t_s[at], to_s[at]
    while len(clients):
        there, changes = timetable.at(clients, t_s)
        until_s = np.minimum(changes, to_s)
        yield Away(clients[~there], t_s[~there], until_s[~there])
        on = changes < to_s
        clients, t_s, to_s = clients[on], changes[on], to_s[on]


def _drained(
    timetable: BatteryTimetable, reader: Reader, clients: Ints, from_s: float, to_s: float
) -> Iterator[Away]:
    """As ``_walked``, from one end of a client's jobs to the next."""
    taken = reader.arrays(
        f"SELECT client, ended_s, SUM({_TAKEN}) FROM jobs WHERE client IN ({among(clients)}) "  # noqa: S608 - our own
        "GROUP BY client, ended_s ORDER BY client, ended_s",
        client=np.int64,
        ended_s=np.float64,
        joules=np.float64,
    )
    first = np.searchsorted(taken["client"], clients, side="left")
    last = np.searchsorted(taken["client"], clients, side="right")
    since_s, nth = np.full(len(clients), from_s), 0
    while len(clients):
        at = first + nth
        more = at < last
        ended_s = np.full(len(clients), to_s)
        ended_s[more] = taken["ended_s"][at[more]]
        yield from _walked(timetable, clients, since_s, np.minimum(ended_s, to_s))
        clients, first, last = clients[more], first[more], last[more]
        at, ended_s = at[more], ended_s[more]
        timetable.spend(clients, ended_s, taken["joules"][at])
        since_s, nth = np.maximum(ended_s, from_s), nth + 1


def _joined(pieces: list[Away]) -> Away:
    """Pieces in order, those that touch as one."""
    client, from_s, to_s = (np.concatenate(column) for column in zip(*pieces, strict=True))
    order = np.lexsort((from_s, client))
    client, from_s, to_s = client[order], from_s[order], to_s[order]
    fresh = np.ones(len(client), dtype=bool)
    fresh[1:] = (client[1:] != client[:-1]) | (from_s[1:] > to_s[:-1])
    last = np.append(fresh[1:], True)[: len(client)]
    return Away(client[fresh], from_s[fresh], to_s[last])


def among(clients: Ints) -> str:
    """Client numbers as a list of SQL."""
    return ", ".join(map(str, clients.tolist()))
