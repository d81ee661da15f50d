"""What jobs cost until they ended, or until now."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from edgefl.core.draws import Floats
from edgefl.core.ledger import Ledger, Totals
from edgefl.core.plan import Ints, Plan
from edgefl.core.price import Demand
from edgefl.world.network import Network
from edgefl.world.table import Rows, stacked, taken
from edgefl.world.tails import Tails

_STAGES = ("receive", "work", "transmit")
_STATIONS = ("received_s", "worked_s", "arrived_s")
# How many stages a job has completed.
_RECEIVED, _WORKED, _ARRIVED = 1, 2, 3


class Accounts:
    """The jobs that ended, charged and handed over many at a time."""

    def __init__(
        self,
        plan: Plan,
        network: Network,
        tails: Tails,
        hand_over: Callable[[Rows], None],
        at_least: int,
        ledger: Ledger,
    ) -> None:
        """Starts without jobs.

        Args:
            plan: the run's.
            network: the run's.
            tails: the run's.
            hand_over: called with jobs that are complete.
            at_least: with how many at a time; fewer where ``settle`` is called.
            ledger: takes what they cost.
        """
        self._plan = plan
        self._network = network
        self._timeline = network.timeline
        self._tails = tails
        self._hand_over = hand_over
        self._at_least = at_least
        self._ledger = ledger
        self._over: list[Rows] = []
        self._count = 0

    def add(self, rows: Rows, now_s: float) -> None:
        """Takes jobs that ended; all but their energies is known."""
        self._over.append(rows)
        self._ledger.end(rows)
        self._count += len(rows)
        # Batteries are drained at once.
        if self._timeline.drains or self._count >= self._at_least:
            self.settle(now_s)

    def settle(self, now_s: float) -> None:
        """Charges the jobs that were added since the last call, and hands them over."""
        if not self._over:
            return
        rows = stacked(self._over)
        self._over.clear()
        self._count = 0
        add_joules(rows, self._plan)
        self._timeline.spend(rows, now_s)
        self._ledger.charge(rows)
        self._hand_over(rows)

    def totals(self, rows: Rows, states: Floats, now_s: float) -> Totals:
        """What all jobs have cost until now.

        Args:
            rows: those that have not ended; they are changed.
            states: of their clients' speed curves when they were dispatched, (n, curves).
            now_s: virtual seconds since the start.
        """
        self.settle(now_s)
        rows["ended_s"] = now_s
        under_way, _ = cut_short(rows, states, np.full(len(rows), now_s), self._plan, self._network)
        add_joules(rows, self._plan)
        return self._ledger.totals(rows, self._tails.open_j(now_s, taken(rows, under_way)))


def cut_short(
    rows: Rows, states: Floats, until_s: Floats, plan: Plan, network: Network
) -> tuple[Ints, Floats]:
    """Reduces jobs, in place, to what they did until a time: stations, seconds, bytes and operations.

    A stage that was broken off costs the bytes that it moved, or its share of the work.

    Args:
        rows: jobs with the times that they would have.
        states: of the clients' speed curves when the jobs were dispatched, (n, curves).
        until_s: for each of them.
        plan: the run's.
        network: the run's.

    Returns:
        The places of the jobs that were broken off, and the states of their clients' speed curves then.
    """
    if (rows["arrived_s"] <= until_s).all():
        return np.zeros(0, dtype=np.int64), states[:0]
    reached = np.zeros(len(rows), dtype=np.int64)
    for station in _STATIONS:
        passed = rows[station] <= until_s
        reached += passed
        rows[station] = np.where(passed, rows[station], np.nan)
    broken = np.flatnonzero(reached < _ARRIVED)
    after = states[broken]
    exchanges = rows["exchange"][broken]
    for exchange in set(exchanges.tolist()):
        mine = np.flatnonzero(exchanges == exchange)
        at = broken[mine]
        some = taken(rows, at)
        demand = plan.prices[exchange].demand(some["kind"])
        after[mine] = _break_off(some, demand, reached[at], states[at], until_s[at], network)
        rows[at] = some
    return broken, after


def add_joules(rows: Rows, plan: Plan) -> None:
    """Fills in the energies of jobs, in place, given what they did and when."""
    exchanges = rows["exchange"]
    for exchange in set(exchanges.tolist()):
        mine = np.flatnonzero(exchanges == exchange)
        every = len(mine) == len(rows)
        some = rows if every else taken(rows, mine)
        demand = plan.prices[exchange].demand(some["kind"])
        for name, joules in _joules(some, demand):
            rows[name][slice(None) if every else mine] = joules


def _joules(rows: Rows, demand: Demand) -> Iterator[tuple[str, Floats]]:
    """The energies of jobs by name."""
    draw = demand.draw
    seconds = rows["receive_s"], rows["work_s"], rows["transmit_s"]
    charges = demand.charges(seconds, (rows["down_bytes"], rows["up_bytes"]), rows["full_power_s"])
    for stage, charge in zip(_STAGES, charges, strict=True):
        yield f"{stage}_j", charge.active_j
        yield f"{stage}_idle_j", charge.idle_j
    receives, sends = rows["receive_s"] > 0, rows["transmit_s"] > 0
    yield "work_tail_j", draw.tail_j(receives & sends, rows["worked_s"] - rows["received_s"])
    first_s, since_s = np.where(receives, rows["dispatched_s"], rows["worked_s"]), rows["tail_since_s"]
    yield "earlier_tail_j", draw.tail_j((receives | sends) & np.isfinite(since_s), first_s - since_s)
    waits_s = np.minimum(rows["ended_s"], rows["next_s"]) - rows["arrived_s"]
    yield "waiting_j", draw.idle_j(np.where(np.isnan(waits_s), 0.0, waits_s))


def _break_off(
    rows: Rows, demand: Demand, reached: Ints, states: Floats, until_s: Floats, network: Network
) -> Floats:
    """Reduces jobs, in place, to what they did until a time; returns the states of speed curves then."""
    receiving, working = reached < _RECEIVED, reached < _WORKED
    received = network.received(rows, demand, states, until_s)
    start_s = np.where(receiving, until_s, rows["received_s"])
    worked = network.timeline.stage(
        rows["client"], start_s, rows["amount_s"], received.states, working=True, until_s=until_s
    )
    start_s = np.where(working, until_s, rows["worked_s"])
    sent = network.sent(rows, demand, start_s, worked.states, until_s)
    rows["receive_s"] = received.busy_s
    rows["work_s"] = np.where(working, worked.busy_s, rows["work_s"])
    rows["full_power_s"] = np.where(working, worked.power_s, rows["full_power_s"])
    rows["transmit_s"] = sent.busy_s
    rows["down_bytes"] = np.where(receiving, received.moved, rows["down_bytes"])
    rows["up_bytes"] = sent.moved
    # Work without a length is done as soon as it begins.
    done = np.divide(worked.done_s, rows["amount_s"], out=np.ones(len(rows)), where=rows["amount_s"] > 0)
    share = np.where(receiving, 0.0, np.where(working, done, 1.0))
    rows["flops"] = (rows["flops"] * share).astype(np.int64)
    return sent.states
