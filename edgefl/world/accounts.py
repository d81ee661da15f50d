"""What jobs used: the energies of many that ended, and of the tails of their clients' radios.

A tail begins where a transfer ends or is broken off, and is over when the radio's tail time is, when the
client's next transfer begins, whatever job this is of, or when the run ends. One between two transfers of a
job is charged with that job; one that a job leaves open, with the client's next job that transfers something,
or at the run's end.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from edgefl.core.arrays import Floats
from edgefl.core.event import TAIL
from edgefl.core.plan import Plan
from edgefl.core.price import Demand, times
from edgefl.world.job import Job

_STAGES = ("receive", "work", "transmit")


def add_joules(rows: np.ndarray, plan: Plan) -> None:
    """Fills in the energies of jobs, rows of ``LIVE``, in place, given what they did and when."""
    exchanges = rows["exchange"]
    for exchange in set(exchanges.tolist()):
        mine = np.flatnonzero(exchanges == exchange)
        some = rows if len(mine) == len(rows) else rows[mine]
        for name, joules in _joules(some, plan.prices[exchange].demand.taken(some["kind"])):
            rows[name][mine] = joules


def _joules(rows: np.ndarray, demand: Demand) -> Iterator[tuple[str, Floats]]:
    seconds = rows["receive_s"], rows["work_s"], rows["transmit_s"]
    charges = demand.charges(seconds, (rows["down_bytes"], rows["up_bytes"]), rows["full_power_s"])
    for stage, active_j, idle_j in zip(_STAGES, *charges, strict=True):
        yield f"{stage}_j", active_j
        yield f"{stage}_idle_j", idle_j
    receives, sends = rows["receive_s"] > 0, rows["transmit_s"] > 0
    yield "work_tail_j", demand.tail_j(receives & sends, rows["worked_s"] - rows["received_s"])
    first_s, since_s = np.where(receives, rows["dispatched_s"], rows["worked_s"]), rows["tail_since_s"]
    yield "earlier_tail_j", demand.tail_j((receives | sends) & np.isfinite(since_s), first_s - since_s)
    waits_s = np.minimum(rows["ended_s"], rows["next_s"]) - rows["arrived_s"]
    yield "waiting_j", times(demand.idle_w, np.where(np.isnan(waits_s), 0.0, waits_s))


class Tails:
    """When the last transfer of each client ended, and of which job it was."""

    def __init__(self, plan: Plan) -> None:
        self._since_s = np.full(len(plan.clients), -np.inf)
        self._jobs = np.full(len(plan.clients), -1)
        self._kind = plan.clients.kind
        # A client's radio is the same in every exchange.
        self._demand = plan.prices[0].demand

    def since_s(self, client: int) -> float:
        """Since when a tail may be open; minus infinity for none."""
        return float(self._since_s[client])

    def leave(self, job: Job, now_s: float) -> None:
        """Takes what a job leaves open that arrived, or was broken off, now."""
        if job.transmit_s > 0 or job.receive_s > 0:
            self._since_s[job.client], self._jobs[job.client] = _since_s(job, now_s), job.job

    def open_j(self, now_s: float, under_way: Sequence[Job]) -> Floats:
        """The joules of each client's tail that is charged with no job yet, (clients,).

        Jobs under way count as if they were broken off now.
        """
        since_s = self._since_s.copy()
        for job in under_way:
            if job.transmit_s > 0 or job.receive_s > 0:
                since_s[job.client] = _since_s(job, now_s)
        joules = np.zeros(len(since_s))
        clients = np.flatnonzero(np.isfinite(since_s))
        joules[clients] = self._joules(clients, now_s - since_s[clients])
        return joules

    def settled(self, now_s: float) -> np.ndarray:
        """The tails that are open when a run ends and nobody is at a job, as rows of ``TAIL``."""
        clients = np.flatnonzero(np.isfinite(self._since_s))
        since_s, rows = self._since_s[clients], np.zeros(len(clients), dtype=TAIL)
        rows["client"], rows["job"] = clients, self._jobs[clients]
        rows["t_s"] = np.minimum(since_s + self._demand.tail_s[self._kind[clients]], now_s)
        rows["joules"] = self._joules(clients, now_s - since_s)
        charged: np.ndarray = rows[rows["joules"] != 0]
        return charged

    def _joules(self, clients: np.ndarray, seconds: Floats) -> Floats:
        """The joules of clients' tails that may last for so long."""
        joules: Floats = self._demand.taken(self._kind[clients]).tail_j(True, seconds)
        return joules


def _since_s(job: Job, now_s: float) -> float:
    """When the last transfer of a job ended; now if it is the one that was broken off."""
    end_s = job.arrived_s if job.transmit_s > 0 else job.received_s
    return now_s if math.isnan(end_s) else end_s
