"""Records of what happens in virtual time: events, jobs and charges."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """The kinds of events; four of them end a job.

    A job passes dispatched, received, worked and arrived, and ends exactly once: merged (useful), late (for
    its merge), lost (its client left, crashed or timed out) or cut (in flight when the rounds were over).
    """

    DISPATCHED = "dispatched"
    RECEIVED = "received"
    WORKED = "worked"
    ARRIVED = "arrived"
    MERGED = "merged"
    LATE = "late"
    LOST = "lost"
    CUT = "cut"
    REFUSED = "refused"
    EVALUATED = "evaluated"


class Charge(NamedTuple):
    """The cost of one stage of a job; an unknown energy is None.

    Attributes:
        seconds: how long it took.
        down_bytes: bytes that the client received.
        up_bytes: bytes that it sent.
        flops: operations done.
        active_j: energy above idle.
        tail_j: energy of the radio's tail.
        idle_j: energy at idle power.
    """

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
        # Written out for speed: called with every event.
        active_j, tail_j, idle_j = self.active_j, self.tail_j, self.idle_j
        return None if active_j is None or tail_j is None or idle_j is None else active_j + tail_j + idle_j


def total(*joules: float | None) -> float | None:
    """The sum; None if a term is unknown."""
    known = [term for term in joules if term is not None]
    return sum(known) if len(known) == len(joules) else None


NOTHING = Charge()


class Event(NamedTuple):
    """One thing that happened.

    Attributes:
        seq: its place in the run, from 0.
        t_s: virtual seconds since the start.
        kind: see ``Kind``.
        exchange: its name; empty if there is none.
        round: from 0; -1 before the first, the number of rounds after the last.
        client: its number; -1 for the server.
        job: its number; -1 if there is none.
        version: the server version that the job started from; for "merged" the new one, for "evaluated" the
            one that was scored.
        cost: what it cost.
    """

    seq: int
    t_s: float
    kind: Kind
    exchange: str
    round: int
    client: int
    job: int
    version: int
    cost: Charge


@dataclass(frozen=True)
class Job:
    """One client's work in one exchange.

    Attributes:
        id: counted from 0 over the run.
        client: its number.
        exchange: its name.
        version: the server version whose payload it received.
        round: from 0; -1 before the first, the number of rounds after the last.
        nth: this client's n-th job in this exchange, from 0.
        seed: for everything random in its work.
        steps: optimizer steps over all its phases.
    """

    id: int
    client: int
    exchange: str
    version: int
    round: int
    nth: int
    seed: int
    steps: int


class JobRecord(NamedTuple):
    """One job from its dispatch to its end.

    Attributes:
        job: what was dispatched.
        dispatched, received, worked, arrived: its events; None for those it did not reach.
        ended: its last event, or the merge.
        ending: MERGED, LATE, LOST or CUT.
        into: the version that it was merged into; None if it was not merged.
        receive, work, transmit: the cost of each stage, as far as it went.
    """

    job: Job
    dispatched: Event
    received: Event | None
    worked: Event | None
    arrived: Event | None
    ended: Event
    ending: Kind
    into: int | None
    receive: Charge
    work: Charge
    transmit: Charge
