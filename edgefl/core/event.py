"""What happens in virtual time, as records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """The kinds of events."""

    DISPATCHED = "dispatched"
    RECEIVED = "received"
    WORKED = "worked"
    ARRIVED = "arrived"
    LATE = "late"
    LOST = "lost"
    REFUSED = "refused"
    MERGED = "merged"
    EVALUATED = "evaluated"


class Charge(NamedTuple):
    """What one event costs.

    Attributes:
        seconds: how long it took, up to the event.
        down_bytes: bytes the client received.
        up_bytes: bytes it sent.
        flops: operations it did.
        joules: energy its device used; None where unknown.
        tail_j: the radio's tail in it.
        idle_j: the idle power in it.
    """

    seconds: float = 0.0
    down_bytes: int = 0
    up_bytes: int = 0
    flops: int = 0
    joules: float | None = 0.0
    tail_j: float | None = 0.0
    idle_j: float | None = 0.0


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
    """One client's work in one exchange.

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
