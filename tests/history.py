"""What a world did, as lists of events and of jobs: the reference for the store's view."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from edgefl.core.event import ENDINGS, Kind, TrainingJob
from edgefl.core.plan import Plan
from edgefl.world.needs import jobs_of


class Cost(NamedTuple):
    """The cost of one stage of a job; an unknown energy is None."""

    seconds: float = 0.0
    down_bytes: int = 0
    up_bytes: int = 0
    flops: int = 0
    active_j: float | None = 0.0
    tail_j: float | None = 0.0
    idle_j: float | None = 0.0

    @property
    def joules(self) -> float | None:
        """All energy; None if a part is unknown."""
        parts = self.active_j, self.tail_j, self.idle_j
        return None if None in parts else sum(parts)


class Event(NamedTuple):
    """One thing that happened, in the columns of the store's view; ``seq`` is its place in the run."""

    seq: int
    t_s: float
    kind: Kind
    exchange: str
    round: int
    client: int
    job: int
    version: int
    cost: Cost


class JobRecord(NamedTuple):
    """One job, with its events; those that it did not reach are None."""

    job: TrainingJob
    dispatched: Event
    received: Event | None
    worked: Event | None
    arrived: Event | None
    ended: Event
    ending: Kind
    into: int | None
    receive: Cost
    work: Cost
    transmit: Cost


NOTHING = Cost()
STAGES = (("receive", "received_s"), ("work", "worked_s"), ("transmit", "arrived_s"))
# An event of each stage is charged with it.
TAILS = ("earlier_tail_j", "work_tail_j", None)
KINDS = (Kind.RECEIVED, Kind.WORKED, Kind.ARRIVED)


def history(plan: Plan, server, chunks, tails=()) -> tuple[list[Event], list[JobRecord]]:
    """The events in order, and the jobs in the order in which they ended, of a world's outputs.

    ``tails`` are those that were settled; none of them is an event unless they are given.
    """
    rows = np.concatenate(chunks) if chunks else None
    keyed = [((event.t_s, event.turn, 0, -1), _server_event(event)) for event in server]
    jobs = [] if rows is None else list(zip(jobs_of(plan, rows), rows, strict=True))
    each = [_events(job, row) for job, row in jobs]
    keyed += [pair for pairs in each for pair in pairs]
    by_number = {job.id: job for job, _ in jobs}
    keyed += [_settled(by_number[int(tail["job"])], tail) for tail in tails]
    keyed.sort(key=lambda pair: pair[0])
    events = [event._replace(seq=seq) for seq, (_, event) in enumerate(keyed)]
    of_job = {}
    for event in events:
        of_job.setdefault(event.job, {})[event.kind] = event
    merged = {event.version: event for event in events if event.kind is Kind.MERGED}
    return events, [_record(job, row, of_job[job.id], merged) for job, row in jobs]


def _server_event(event) -> Event:
    return Event(
        -1, event.t_s, event.kind, event.exchange, event.round, event.client, -1, event.version, NOTHING
    )


def _settled(job, tail):
    """The event that settles a tail, after all others of its time."""
    joules = _known(tail["joules"])
    at = Kind.SETTLED, job.exchange, job.round, job.client, job.id, job.version
    event = Event(-1, float(tail["t_s"]), *at, Cost(tail_j=joules))
    return (event.t_s, math.inf, 5, job.id), event


def _costs(row) -> list[Cost]:
    quantities = (
        (int(row["down_bytes"]), 0, 0),
        (0, 0, int(row["flops"])),
        (0, int(row["up_bytes"]), 0),
    )
    return [
        Cost(
            float(row[f"{stage}_s"]),
            *each,
            _known(row[f"{stage}_j"]),
            _known(row[tail]) if tail else 0.0,
            _known(row[f"{stage}_idle_j"]),
        )
        for (stage, _), each, tail in zip(STAGES, quantities, TAILS, strict=True)
    ]


def _known(value) -> float | None:
    return None if math.isnan(value) else float(value)


def _events(job: TrainingJob, row):
    """A job's events, each with its place among those of its time."""

    def event(t_s, kind, cost):
        return Event(-1, float(t_s), kind, job.exchange, job.round, job.client, job.id, job.version, cost)

    def turn(t_s):
        return int(row["dispatched_turn"]) if t_s == row["dispatched_s"] else 0

    start = row["dispatched_s"]
    yield (start, row["dispatched_turn"], 0, job.id), event(start, Kind.DISPATCHED, NOTHING)
    costs = _costs(row)
    pending = NOTHING
    for rank, ((_, station), kind, cost) in enumerate(zip(STAGES, KINDS, costs, strict=True), start=1):
        if math.isnan(row[station]):
            pending = cost
            break
        yield (row[station], turn(row[station]), rank, job.id), event(row[station], kind, cost)
    ending = ENDINGS[row["ending"]]
    if ending is not Kind.MERGED:
        end_s = row["ended_s"]
        own = int(row["ended_turn"]) or turn(end_s)
        yield (end_s, own, 4, job.id), event(end_s, ending, pending)


def _record(job, row, events, merged) -> JobRecord:
    ending = ENDINGS[row["ending"]]
    into = int(row["into_version"]) if ending is Kind.MERGED else None
    stations = (events.get(kind) for kind in KINDS)
    ended = merged[into] if into is not None else events[ending]
    return JobRecord(job, events[Kind.DISPATCHED], *stations, ended, ending, into, *_costs(row))
