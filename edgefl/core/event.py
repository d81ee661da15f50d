"""What happens in virtual time, as records: events, jobs, and how jobs end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """The kinds of events; four of them end a job.

    A job passes dispatched, received, worked and arrived, and ends exactly once: merged (useful), late (it
    arrived, or would have, after its merge), lost (its client left, crashed or timed out) or cut (in flight
    when the run ended).
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
    """What one stage of a job costs; an energy is None where it is unknown.

    Attributes:
        seconds: how long it took.
        down_bytes: bytes that the client received.
        up_bytes: bytes that it sent.
        flops: operations that it did.
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
        """All energy; None where a part is unknown."""
        # Written out: it is asked for with every event.
        active_j, tail_j, idle_j = self.active_j, self.tail_j, self.idle_j
        return None if active_j is None or tail_j is None or idle_j is None else active_j + tail_j + idle_j


def total(*joules: float | None) -> float | None:
    """The sum; None where a term is unknown."""
    known = [term for term in joules if term is not None]
    return sum(known) if len(known) == len(joules) else None


NOTHING = Charge()


class Event(NamedTuple):
    """One thing that happened.

    Attributes:
        seq: its place in the run, from 0.
        t_s: virtual seconds since the start.
        kind: see ``Kind``.
        exchange: the exchange's name; empty where there is none.
        round: from 0; -1 before the first, the number of rounds after the last.
        client: its number; -1 for the server.
        job: the job's number; -1 where there is none.
        version: the server version it began from, or for "merged" and "evaluated" the one it made or scored.
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
    """One client's work in one exchange, as it is dispatched.

    Attributes:
        id: counted from 0 over the run.
        client: who.
        exchange: which exchange, by name.
        version: the server version whose payload it received.
        round: from 0; -1 before the first, the number of rounds after the last.
        nth: this client's n-th job in this exchange, from 0.
        seed: of everything random in its work.
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
        dispatched, received, worked, arrived: its events; None for what it did not reach.
        ended: its last event, or the merge's where it was merged.
        ending: MERGED, LATE, LOST or CUT.
        into: the version that it was merged into; None where it was not merged.
        receive, work, transmit: what each stage cost, as far as it went.
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
