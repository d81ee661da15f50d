"""The tails of clients' radios, which last from one transfer to the next one, whatever jobs these are of.

A tail begins where a transfer ends or is broken off, and is over when the radio's tail time is, when the
client's next transfer begins or when the run ends. One between two transfers of a job is charged with that
job; one that a job leaves open, with the client's next job that transfers something, or at the run's end.
"""

from __future__ import annotations

import numpy as np

from edgefl.core.draws import Floats
from edgefl.core.event import TAIL
from edgefl.core.plan import Ints, Plan
from edgefl.world.table import Rows, Table


class Tails:
    """When the last transfer of each client ended, and of which job it was.

    Of a client that is at a job, when it will end, or did before the job if that is not known.
    """

    def __init__(self, plan: Plan, table: Table) -> None:
        """Nobody has transferred anything."""
        # Of jobs that arrived since: their slots, whose rows are still there.
        self._arrived: list[int] = []
        self._table = table
        self._since_s = np.full(len(plan.clients), -np.inf)
        self._jobs = np.full(len(plan.clients), -1)
        self._kind = plan.clients.kind
        # A client's radio is the same in every exchange.
        self._prices = plan.prices[0]

    def arrive(self, slot: int) -> None:
        """A job arrived, which leaves open what it does as ``leave`` would find it."""
        self._arrived.append(slot)

    def before(self, rows: Rows) -> None:
        """Fills in, in jobs that are dispatched, which tails their clients' earlier jobs left open."""
        self._catch_up()
        clients = rows["client"]
        rows["tail_since_s"], rows["tail_job"] = self._since_s[clients], self._jobs[clients]

    def leave(self, rows: Rows) -> None:
        """Takes what jobs leave open, one of a client, given all of their times."""
        clients, moves = rows["client"], (rows["receive_s"] > 0) | (rows["transmit_s"] > 0)
        self._since_s[clients] = _since_s(rows)
        self._jobs[clients] = np.where(moves, rows["job"], rows["tail_job"])

    def open_j(self, now_s: float, under_way: Rows) -> Floats:
        """The joules of each client's tail that is charged with no job yet, (clients,).

        Args:
            now_s: until when.
            under_way: the jobs that clients are at, as if they were broken off then.
        """
        self._catch_up()
        since_s = self._since_s.copy()
        since_s[under_way["client"]] = _since_s(under_way)
        joules = np.zeros(len(since_s))
        clients = np.flatnonzero(np.isfinite(since_s))
        joules[clients] = self._joules(clients, now_s - since_s[clients])
        return joules

    def settled(self, now_s: float) -> np.ndarray:
        """The tails that are open when a run ends and nobody is at a job, as rows of ``TAIL``."""
        self._catch_up()
        clients = np.flatnonzero(np.isfinite(self._since_s))
        since_s = self._since_s[clients]
        rows = np.zeros(len(clients), dtype=TAIL)
        rows["client"], rows["job"] = clients, self._jobs[clients]
        rows["t_s"] = np.minimum(since_s + self._prices.tail_s[self._kind[clients]], now_s)
        rows["joules"] = self._joules(clients, now_s - since_s)
        charged: np.ndarray = rows[rows["joules"] != 0]
        return charged

    def _catch_up(self) -> None:
        """Takes what arrived jobs leave open, all at once."""
        if self._arrived:
            slots, self._arrived = np.array(self._arrived), []
            self.leave(self._table.take(slots))

    def _joules(self, clients: Ints, seconds: Floats) -> Floats:
        """The joules of clients' tails that may last for so long."""
        joules: Floats = self._prices.demand(self._kind[clients]).draw.tail_j(True, seconds)
        return joules


def _since_s(rows: Rows) -> Floats:
    """When the last transfer of each job's client ended."""
    arrived_s, received_s, ended_s = rows["arrived_s"], rows["received_s"], rows["ended_s"]
    sent_s = np.where(np.isnan(arrived_s), ended_s, arrived_s)
    got_s = np.where(np.isnan(received_s), ended_s, received_s)
    return np.where(
        rows["transmit_s"] > 0, sent_s, np.where(rows["receive_s"] > 0, got_s, rows["tail_since_s"])
    )
