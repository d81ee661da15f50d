"""The virtual world that a policy acts in; it alone starts and ends jobs."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeAlias

import numpy as np
import simpy
from numpy.typing import ArrayLike

from edgefl.core.catalogue import load
from edgefl.core.components import merges_stale
from edgefl.core.draws import Floats
from edgefl.core.errors import RunError
from edgefl.core.event import ENDINGS, Kind, ServerEvent
from edgefl.core.ledger import Ledger, Totals
from edgefl.core.plan import Ints, Plan, Prices
from edgefl.core.user_code import returned
from edgefl.world.accounts import Accounts, cut_short
from edgefl.world.checks import Checks
from edgefl.world.clock import Clock
from edgefl.world.dispatch import Dispatcher
from edgefl.world.flights import Flights, joined
from edgefl.world.late import LateStates
from edgefl.world.needs import Correction, Evaluate, Feedback, Merge, Need
from edgefl.world.selectors import Selector
from edgefl.world.stops import Stops
from edgefl.world.table import Rows, stacked, taken

Ask: TypeAlias = Generator[simpy.Event, Any, Feedback]

_MERGED, _LOST = ENDINGS.index(Kind.MERGED), ENDINGS.index(Kind.LOST)

# So many jobs may end in a row without an upload, in all and for each at work; more would go on for ever.
_MOST_IN_VAIN, _MOST_IN_VAIN_EACH = 1000, 100


class World:
    """What a policy may do: dispatch jobs, wait for them, merge or discard them.

    Attributes:
        env: SimPy's clock.
        plan: the plan.
        version: the current server version, from 0.
        round: the round in progress, from 0; -1 before the first, the number of rounds after the last.
        clients: the admitted clients, in order; read-only.
        table: the jobs that have not ended.
        needs: what the caller has not answered yet, each with the event that takes the answer.
        stopped: which of ``server.until`` ended the rounds; None while they go on.
    """

    def __init__(
        self,
        plan: Plan,
        emit: Callable[[ServerEvent], None],
        ended: Callable[[np.ndarray], None],
        *,
        settled: Callable[[np.ndarray], None] | None = None,
        stepwise: bool = False,
        at_least: int = 1,
        ledger: Ledger | None = None,
    ) -> None:
        """A world at time 0.

        Args:
            plan: the plan.
            emit: called with the server's events.
            ended: called with jobs that ended, as rows of ``JOB``.
            settled: called at the end with the tails that are open, as rows of ``TAIL``.
            at_least: with how many of them at a time; see ``simulate``.
            ledger: takes what jobs that ended cost; None for one of its own.
            stepwise: whether jobs go from station to station even where links are not shared, so that they
                could be known as a whole at their dispatch. The same happens either way.
        """
        self.env = Clock()
        self.plan = plan
        self.version = self._round_from = 0
        self.round = -1
        self.clients: Ints = np.flatnonzero(plan.clients.admitted)
        # Policies are given this very array.
        self.clients.setflags(write=False)
        self.needs: deque[tuple[Need, simpy.Event]] = deque()
        self.stopped: str | None = None
        self._emit = emit
        self._ended = ended
        self._settled = settled
        self._turns = 0
        self._scored = -1
        self._scores: dict[str, float] = {}
        self._live: Counter[int] = Counter()
        # Jobs that have ended since an upload last arrived.
        self._in_vain = 0
        self._late = LateStates(plan)
        self._stops = Stops(plan)
        self._dispatcher = Dispatcher(plan, self.env, stepwise=stepwise)
        self.table = self._dispatcher.table
        self._ledger = ledger or Ledger(len(plan.clients))
        self._accounts = Accounts(
            plan, self._dispatcher.network, self._dispatcher.tails, self._hand_over, at_least, self._ledger
        )
        policy = load("policies", plan.scenario.server.policy.name)
        self._checks = Checks(self, stale=merges_stale(policy, plan.policy))
        selector = load("selectors", plan.scenario.server.selector.name)
        built = selector.build(plan.selector, self)
        self._selector = returned(built, Selector, selector.build, "an object with select", RunError)
        self._unobserved: list[Rows] | None = [] if hasattr(self._selector, "observe") else None

    # What a policy and a selector see.

    @property
    def now_s(self) -> float:
        """Virtual seconds since the start."""
        return float(self.env.now)

    @property
    def serving(self) -> bool:
        """Whether another round is to come."""
        return self.stopped is None

    def due(self) -> list[Prices]:
        """The exchanges of the round in progress, in the method's order."""
        rounds = (prices for prices in self.plan.prices if prices.at == "round")
        return [prices for prices in rounds if (self.round + 1) % prices.every == 0]

    def predicted_s(self, exchange: Prices, clients: Ints) -> Floats:
        """How long jobs take, with each client's slowdown and without jitter, pauses or throttling.

        Each client has its own link to itself, and a link that follows a trace has its mean rates.
        """
        demand = exchange.demand(self.plan.clients.kind[clients])
        seconds: Floats = demand.down_s + demand.work_s * self.plan.clients.slowdown[clients] + demand.up_s
        return seconds

    def battery(self, clients: Ints) -> Floats:
        """The level of clients' batteries now, from 0 to 1.

        Raises:
            RunError: the fleet has no batteries.
        """
        level = getattr(self._dispatcher.timeline.timetable, "level", None)
        if level is None:
            raise RunError(
                "the fleet has no batteries",
                where="fleet.availability",
                hint="give it availability: {name: charging}",
            )
        self._settle()
        levels: Floats = level(clients, np.full(len(clients), self.env.now))
        return levels

    # What a policy does.

    def candidates(self, clients: Ints | None = None) -> Ints:
        """Those of some clients, all that were admitted by default, that are free and available now."""
        # Jobs that were lost have drained batteries.
        self._settle()
        return self._dispatcher.candidates(self.clients if clients is None else clients)

    def invite(
        self, exchange: Prices, *, count: int | None = None, factor: float = 1.0
    ) -> Generator[simpy.Event, Any, Ints]:
        """Waits until a client is free and available; returns who takes part in an exchange now.

        All who can, or those whom the selector chooses.

        Args:
            exchange: which.
            count: how many; None for the scenario's number of participants.
            factor: times that number, rounded down; at least one client is asked.

        Raises:
            RunError: nobody will ever be available again, or the selector did not do its part.
        """
        while not len(candidates := self.candidates()):
            yield self.change()
        participants = count or self.plan.scenario.server.participants
        if exchange.everyone or participants is None:
            return candidates
        return self._chosen(max(1, int(min(participants * factor, len(candidates)))), candidates)

    def choose(self, count: int) -> Ints:
        """The selector's choice of ``count`` of the candidates now, in order; all if there are no more.

        Raises:
            RunError: the selector returned too few or too many, one twice, or others.
        """
        return self._chosen(count, self.candidates())

    def _chosen(self, count: int, candidates: Ints) -> Ints:
        if count >= len(candidates):
            return candidates
        return self._checks.chosen(self._selector.select, count, candidates)

    def no_flights(self) -> Flights:
        """None, to add others to."""
        return Flights(self, *(np.zeros(0, dtype=np.int64) for _ in range(3)))

    def dispatch(self, exchange: str, clients: ArrayLike, *, finish_by: float | None = None) -> Flights:
        """Starts the next job of each client, from the current version.

        Args:
            exchange: its name.
            clients: a client, or several different ones.
            finish_by: when the uploads are due, in virtual seconds: who would be late stops after the last
                optimizer step that leaves time for the upload. Who cannot do one step goes on to the end.

        Raises:
            RunError: the exchange or a client is unknown, a client was refused, is not available, or its last
                job has not arrived or been discarded yet; or job after job ended, and no upload arrived.
        """
        who = np.atleast_1d(np.asarray(clients, dtype=np.int64))
        self._settle()
        self._checks.free(exchange, who)
        if self._in_vain > max(_MOST_IN_VAIN, _MOST_IN_VAIN_EACH * (len(who) + self._live.total())):
            raise RunError(
                f"the last {self._in_vain} jobs were lost or late, and no upload has arrived since",
                where=f"policy {self.plan.scenario.server.policy.name}",
                hint="see the fleet's failures and availability; a timeout or a deadline may be too short",
            )
        flights = self._dispatcher.dispatch(self, exchange, who, self._turn(), finish_by)
        self._live[self.version] += len(flights)
        return flights

    def ended(self, flights: Flights, count: int | None = None) -> simpy.Event:
        """An event: ``count`` of the flights have arrived, or none of them is on its way any more.

        Args:
            flights: jobs.
            count: how many; None for all.
        """
        return self._dispatcher.waits.wait(flights, count)

    def change(self, *, clients: bool = True) -> simpy.Event:
        """An event: a job arrives or ends, or somebody who was away may be available.

        Args:
            clients: whether to wait for clients too.

        Raises:
            RunError: neither will ever happen.
        """
        self._settle()
        return self._dispatcher.change(self.clients if clients else self.clients[:0])

    def discard(self, flights: Flights | Iterable[Flights], kind: Kind) -> None:
        """Ends jobs that will not be merged, wherever they are; what they cost so far is charged.

        Late work keeps the state that it wrote for its client. A job that was cut or lost stays so.

        Args:
            flights: in flight, or arrived and not merged.
            kind: LATE, LOST or CUT.
        """
        some = self._together(flights)
        self._settle()
        self._checks.ends_once(some, kind)
        self._discard(some[some.open], kind)

    def merge(
        self,
        exchange: str,
        flights: Flights | Iterable[Flights],
        *,
        scales: Callable[[int], float] | None = None,
        correction: Correction = "move",
        equal: bool = False,
    ) -> Ask:
        """Waits for the server's work on flights that arrived, asks for their merge, and makes a new version.

        Args:
            exchange: its name.
            flights: what is merged.
            scales: staleness in versions -> how much of an update counts; None is all of each.
            correction: how a stale or scaled upload is re-expressed.
            equal: whether all weigh the same in averages; otherwise by their samples.

        Raises:
            RunError: the policy does what it must not; see ``Checks``.
        """
        some = self._together(flights)
        self._settle()
        self._checks.ends_once(some, Kind.MERGED)
        some = some[np.lexsort((some.jobs, some.clients))]
        self._checks.order(exchange, some)
        self._checks.staleness(some.rows)
        self._checks.merging(correction, self.version - self._round_from)
        work = self.plan.server_work
        cost = None if work is None else work.price(exchange, len(some))
        if cost is not None:
            yield self.env.timeout(cost.seconds)
            self._settle()
            self._checks.ends_once(some, Kind.MERGED)
        base, self.version = self.version, self.version + 1
        self._record(Kind.MERGED, exchange=exchange)
        rows = self._end(some, _MERGED, np.full(len(some), self.env.now), self._turns)
        staleness = (base - rows["version"]).tolist()
        weights = np.ones(len(rows)) if equal else self.plan.clients.samples[rows["client"]].astype(float)
        last = rows["client"][np.lexsort((rows["job"], rows["arrived_s"]))[-1:]].tolist()
        return (
            yield from self._ask(
                Merge(
                    plan=self.plan,
                    late_rows=self._late.take(self._ready, self.now_s),
                    ready_rows=self._ready,
                    version=self.version,
                    exchange=exchange,
                    round=self.round,
                    t_s=self.now_s,
                    rows=rows,
                    weights=tuple(weights.tolist()),
                    scales=tuple(1.0 if scales is None else float(scales(each)) for each in staleness),
                    correction=correction,
                    slowest=last[0] if last else -1,
                    live_versions=tuple(sorted({self.version, *self._live, *self._late.versions()})),
                    regular=self.serving,
                    cost=cost,
                )
            )
        )

    def collect(self, exchange: Prices) -> Ask:
        """One exchange with its cohort: dispatches all jobs, waits for all and merges those that arrive."""
        clients = yield from self.invite(exchange)
        flights = self.dispatch(exchange.exchange, clients)
        yield self.ended(flights)
        return (yield from self.merge(exchange.exchange, flights[flights.arrived]))

    def end_round(self) -> Generator[simpy.Event, Any, None]:
        """Ends a round; evaluates every ``evaluate.every`` rounds and after the last."""
        ended = self.round + 1
        stopped = self._stops.reached(ended, self.now_s, self.totals)
        in_turn = ended % self.plan.scenario.evaluate.every == 0
        if stopped or in_turn:
            yield from self.evaluate(in_turn=in_turn)
            stopped = self._stops.accurate(self._scores) or stopped
        self.round, self.stopped, self._round_from = ended, stopped, self.version

    # What the driver does.

    def totals(self) -> Totals:
        """What all clients have moved, done and used until now, also for jobs in flight."""
        self._settle()
        slots = self.table.open()
        return self._accounts.totals(self.table.take(slots), self.table.states[slots], self.env.now)

    def evaluate(self, *, in_turn: bool = True) -> Generator[simpy.Event, Any, None]:
        """Asks for the current version's scores, once for each version.

        Args:
            in_turn: whether it is asked for even where the rounds go on.
        """
        if self.version != self._scored:
            self._scored = self.version
            self._record(Kind.EVALUATED)
            late, at = self._late.take(self._ready, self.now_s), (self.version, self.round, self.now_s)
            need = Evaluate(self.plan, late, self._ready, *at, self.totals, in_turn and self.serving)
            feedback = yield from self._ask(need)
            self._scores = dict(feedback.scores)

    def refuse(self) -> None:
        """Records who cannot take part."""
        for refusal in self.plan.refusals:
            self._record(Kind.REFUSED, exchange=refusal.exchange, client=refusal.client)

    def cut(self) -> None:
        """Ends every job that is in flight, or has arrived and was not merged."""
        self._settle()
        slots = self.table.open()
        rows = self.table.rows
        self._discard(Flights(self, slots, rows["job"][slots], rows["client"][slots]), Kind.CUT)
        self._accounts.settle(self.env.now)

    def close(self) -> None:
        """Ends the run: cuts every job, and settles the tails that are open."""
        self.cut()
        tails = self._dispatcher.tails.settled(self.env.now)
        self._ledger.spend(tails["client"], tails["joules"])
        if self._settled is not None and len(tails):
            self._settled(tails)

    def _together(self, flights: Flights | Iterable[Flights]) -> Flights:
        each = [flights] if isinstance(flights, Flights) else list(flights)
        return joined(each) if each else self.no_flights()

    def _discard(self, flights: Flights, kind: Kind) -> None:
        if not len(flights):
            return
        rows = self._end(flights, ENDINGS.index(kind), np.full(len(flights), self.env.now), self._turn())
        if kind is Kind.LATE:
            self._late.add(rows)
        self._dispatcher.waits.look_again()

    def _settle(self) -> None:
        """Ends the jobs that were lost on their own until now."""
        slots = self._dispatcher.lost()
        if len(slots):
            rows = self.table.rows
            flights = Flights(self, slots, rows["job"][slots], rows["client"][slots])
            self._end(flights, _LOST, rows["due_s"][slots], 0)

    def _end(self, flights: Flights, ending: int, at_s: Floats, turn: int) -> Rows:
        """The one end of jobs, at a time each."""
        slots = flights.slots
        rows, states = self.table.take(slots), self.table.states[slots]
        rows["ending"], rows["ended_s"], rows["ended_turn"] = ending, at_s, turn
        rows["into_version"] = self.version if ending == _MERGED else -1
        self.table.rows["ending"][slots] = ending
        self.table.free(slots)
        # A job that was lost arrives no more, even if it would have.
        heard = ending != _LOST and (rows["arrived_s"] <= at_s).any()
        self._in_vain = 0 if heard else self._in_vain + len(rows)
        broken, after = cut_short(rows, states, at_s, self.plan, self._dispatcher.network)
        if len(broken):
            self._dispatcher.release(taken(rows, broken), after)
        self._live.subtract(rows["version"].tolist())
        self._live = +self._live
        self._accounts.add(rows, self.env.now)
        return rows

    def _hand_over(self, rows: Rows) -> None:
        if self._unobserved is not None:
            self._unobserved.append(rows)
        self._ended(rows)

    def _ready(self) -> Rows:
        return self.table.take(self.table.open())

    def _turn(self) -> int:
        self._turns += 1
        return self._turns

    def _record(self, kind: Kind, *, exchange: str = "", client: int = -1) -> None:
        """Emits an event that belongs to no job."""
        round_ = -1 if kind is Kind.REFUSED else self.round
        self._emit(ServerEvent(self._turn(), self.now_s, kind, exchange, round_, client, self.version))

    def _ask(self, need: Need) -> Ask:
        answered = self.env.event()
        self.needs.append((need, answered))
        feedback: Feedback = yield answered
        if self._unobserved is not None:
            self._accounts.settle(self.env.now)
        if self._unobserved:
            self._selector.observe(stacked(self._unobserved), feedback.jobs)
            self._unobserved.clear()
        return feedback
