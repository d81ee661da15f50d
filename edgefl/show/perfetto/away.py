"""When clients were away, from the plan's availability and what their jobs took from their batteries."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from edgefl.analysis.run import Floats, Ints, Run
from edgefl.core.availability import BatteryTimetable, Timetable
from edgefl.core.availability.always import Params as Always
from edgefl.core.event import JOULES
from edgefl.core.plan import Plan
from edgefl.show.perfetto.counters import nanoseconds

MOST_INTERVALS = 500_000
"""More are not shown."""

Away = tuple[Ints, Floats, Floats]
"""Clients, and the virtual seconds from and to which each of them was away, (n,)."""


def away_of(
    plan: Plan, run: Run, clients: Ints, from_s: float, to_s: float, note: Callable[[str], None]
) -> dict[int, list[tuple[int, int]]]:
    """When clients were away in a span of virtual time, in nanoseconds, ascending, none touching another.

    What jobs take from batteries is taken where they end, as in the run. Too many intervals are none, with a
    note.

    Raises:
        UserError: the run is damaged.
    """
    if isinstance(plan.fleet.availability, Always):
        return {}
    timetable = plan.fleet.availability.timetable(plan.clients, plan.scenario.seed)
    starts, ends = np.full(len(clients), from_s), np.full(len(clients), to_s)
    if isinstance(timetable, BatteryTimetable):
        pieces = _drained(timetable, run, clients, starts, ends)
    else:
        pieces = _walked(timetable, clients, starts, ends)
    found, count = [(clients[:0], np.zeros(0), np.zeros(0))], 0
    for piece in pieces:
        found.append(piece)
        count += len(piece[0])
        if count > MOST_INTERVALS:
            note(
                f"when clients were away is not shown: there are more than {MOST_INTERVALS:,} intervals; "
                "choose fewer --clients or --rounds"
            )
            return {}
    client, begin_s, end_s = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((begin_s, client))
    client, begin_s, end_s = client[order], begin_s[order], end_s[order]
    fresh = np.ones(len(client), dtype=bool)
    fresh[1:] = (client[1:] != client[:-1]) | (begin_s[1:] > end_s[:-1])
    last = np.append(fresh[1:], True)[: len(client)]
    times: dict[int, list[tuple[int, int]]] = {}
    columns = (client[fresh], nanoseconds(begin_s[fresh]), nanoseconds(end_s[last]))
    for number, begin_ns, end_ns in zip(*(column.tolist() for column in columns), strict=True):
        times.setdefault(number, []).append((begin_ns, end_ns))
    return times


def _walked(timetable: Timetable, clients: Ints, t_s: Floats, to_s: Floats) -> Iterator[Away]:
    """The times that clients are away, one interval of each at a time."""
    at = t_s < to_s
    clients, t_s, to_s = clients[at], t_s[at], to_s[at]
    while len(clients):
        there, changes = timetable.at(clients, t_s)
        until_s = np.minimum(changes, to_s)
        yield clients[~there], t_s[~there], until_s[~there]
        on = changes < to_s
        clients, t_s, to_s = clients[on], changes[on], to_s[on]


def _drained(
    timetable: BatteryTimetable, run: Run, clients: Ints, from_s: Floats, to_s: Floats
) -> Iterator[Away]:
    """As ``_walked``, from one end of a client's jobs to the next."""
    jobs = run.jobs[np.isin(run.jobs.client, clients)]
    jobs = jobs[np.lexsort((jobs.ended_s, jobs.client))]
    taken_j = sum(np.nan_to_num(jobs[name]) for name in JOULES if not name.endswith("idle_j"))
    first = np.searchsorted(jobs.client, clients, side="left")
    last = np.searchsorted(jobs.client, clients, side="right")
    since_s, nth = from_s, 0
    while len(clients):
        at = first + nth
        more = at < last
        ended_s = to_s.copy()
        ended_s[more] = jobs.ended_s[at[more]]
        yield from _walked(timetable, clients, since_s, np.minimum(ended_s, to_s))
        clients, first, last = clients[more], first[more], last[more]
        from_s, to_s, at, ended_s = from_s[more], to_s[more], at[more], ended_s[more]
        timetable.spend(clients, ended_s, taken_j[at])
        since_s, nth = np.maximum(ended_s, from_s), nth + 1
