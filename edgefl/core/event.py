"""Records of what happens in virtual time: jobs, the server's events, and charges."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np


class Kind(StrEnum):
    """The kinds of events; four of them end a job.

    A job passes dispatched, received, worked and arrived, and ends exactly once: merged (useful), late (for
    its merge), lost (its client left, crashed or timed out) or cut (in flight when the rounds were over).
    When the run ends, the tails that clients' last transfers left open are settled.
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
    SETTLED = "settled"


ENDINGS = (None, Kind.MERGED, Kind.LATE, Kind.LOST, Kind.CUT)
"""How jobs end, by their number in a row's ``ending``; 0 is a job that has not ended."""

JOULES = (
    "receive_j", "receive_idle_j", "work_j", "work_tail_j", "work_idle_j", "transmit_j", "transmit_idle_j",
    "earlier_tail_j",
)  # fmt: skip
"""A row's energies: of each stage above idle and at idle power, and of the radio's tail.

``work_tail_j`` is the tail between the job's download and its upload, ``earlier_tail_j`` the one that its
client's earlier transfer left open, until the job's first transfer begins.
"""

_INTEGERS = (
    "job", "client", "exchange", "round", "version", "nth", "steps", "ending", "into_version",
    "dispatched_turn", "ended_turn", "down_bytes", "up_bytes", "flops",
)  # fmt: skip
_REALS = (
    "dispatched_s", "received_s", "worked_s", "arrived_s", "ended_s", "receive_s", "work_s", "transmit_s",
    "full_power_s", *JOULES, "waiting_j",
)  # fmt: skip

JOB = np.dtype([*((name, np.int64) for name in _INTEGERS), *((name, np.float64) for name in _REALS)])
"""One job from its dispatch to its end.

Its number, client, exchange (place in the plan), round (from 0; -1 before the first, the number of rounds
after the last), the version that it received, its count from 0 among its client's jobs in the exchange, and
optimizer steps; ``ending`` and the version that it was merged into, -1 for none; the seconds at
which it was dispatched, received, worked, arrived and ended, NaN for those it did not reach; the busy seconds
of its three stages, its bytes, operations and joules as far as it went, NaN for an unknown energy.
``full_power_s`` are the seconds of work at the device's full power that take as much energy above idle as its
work did: fewer than ``work_s`` where heat lowered the power.
``waiting_j``, which is no part of its energy, is what its client draws at idle power from the job's arrival
until it ends or the client is dispatched again.

Turns are the server's actions, counted: ``dispatched_turn`` and ``ended_turn`` are those that began and ended
the job, 0 for a job that was lost on its own. Events of one time are ordered by them.
"""


def joules(rows: Any) -> np.ndarray:
    """Each job's energy, (n,), of rows of ``JOB`` or its columns by name; NaN where a part is unknown."""
    return sum((rows[name] for name in JOULES[1:]), rows[JOULES[0]])


class EnergyTotal(NamedTuple):
    """The joules of the clients whose energy is known in full; None where it is of none."""

    joules: float | None
    energy_known: int
    energy_clients: int


TAIL = np.dtype([("client", np.int64), ("job", np.int64), ("t_s", np.float64), ("joules", np.float64)])
"""The tail of a client's radio that was open when the run ended.

The client, the job whose transfer left it open, when it was over - the run's end at the latest - and its
joules, NaN for an unknown energy.
"""


class ServerEvent(NamedTuple):
    """An event that belongs to no job: a merge, an evaluation or a refusal.

    Attributes:
        turn: the server's actions, counted from 1.
        exchange: empty if there is none.
        round: from 0; -1 before the first, the number of rounds after the last.
        client: -1 for the server.
        version: for "merged" the new one, for "evaluated" the one that was scored.
    """

    turn: int
    t_s: float
    kind: Kind
    exchange: str
    round: int
    client: int
    version: int


@dataclass(frozen=True)
class TrainingJob:
    """What training needs of a row of ``JOB``."""

    id: int
    client: int
    exchange: str
    version: int
    round: int
    nth: int
    seed: int
    steps: int
