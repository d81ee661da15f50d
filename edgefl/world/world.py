"""The virtual world that a policy acts in; it alone starts and ends jobs.

The server's policy is a SimPy process, and so is each job (``edgefl.world.job``). A policy waits for jobs as
SimPy's processes wait: ``yield world.ended(jobs) | world.env.timeout(60)``.
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
import simpy
from numpy.typing import ArrayLike
from simpy.events import Condition

from edgefl.core.arrays import Floats, Ints
from edgefl.core.availability.always import Params as Always
from edgefl.core.availability.charging import Charging
from edgefl.core.errors import RunError
from edgefl.core.event import ENDINGS, JOULES, Kind, ServerEvent
from edgefl.core.plan import Plan, Prices
from edgefl.core.price import Demand
from edgefl.core.user_code import returned
from edgefl.world.accounts import Tails, add_joules
from edgefl.world.blind import shared
from edgefl.world.checks import Checks
from edgefl.world.clock import LATER, Clock, Process
from edgefl.world.draws import Ahead
from edgefl.world.job import DOWN, LOST, MERGED, Job, rows_of, stacked
from edgefl.world.ledger import Ledger, Totals
from edgefl.world.links import Own, Shared
from edgefl.world.needs import Correction, Evaluate, Feedback, Merge, Need
from edgefl.world.pace import FleetCurve, States
from edgefl.world.presence import Candidates, Presence
from edgefl.world.selectors import Selector

Ask: TypeAlias = Generator[simpy.Event, Any, Feedback]

# So many jobs may end in a row without an upload, in all and for each at work; more would go on for ever.
_MOST_IN_VAIN, _MOST_IN_VAIN_EACH = 1000, 100
_by_client = attrgetter("client", "job")
_NONE = rows_of([])


class World:
    """What a policy may do: dispatch jobs, wait for them, merge or discard them.

    Attributes:
        version: the current server version, from 0.
        round: the round in progress, from 0; -1 before the first, the number of rounds after the last.
        clients: the admitted clients, in order; read-only.
        open: the jobs that have not ended, by number.
        needs: what the caller has not answered yet, each with the event that takes the answer.
        stopped: which of ``server.until`` ended the rounds; None while they go on.
        speeds: how clients' speeds change; none if they do not.
        pauses, loses: whether jobs wait for clients that leave, or are lost.
    """

    def __init__(
        self,
        plan: Plan,
        emit: Callable[[ServerEvent], None],
        ended: Callable[[np.ndarray], None],
        *,
        settled: Callable[[np.ndarray], None] | None = None,
        at_least: int = 1,
        ledger: Ledger | None = None,
    ) -> None:
        """A world at time 0; see ``simulate`` for the arguments."""
        self.env, self.plan = Clock(), plan
        self.version = self._round_from = 0
        self.round = -1
        self.clients: Ints = np.flatnonzero(plan.clients.admitted)
        # Policies are given this very array.
        self.clients.setflags(write=False)
        self.needs: deque[tuple[Need, simpy.Event]] = deque()
        self.stopped: str | None = None
        self.open: dict[int, Job] = {}
        self._emit, self._ended, self._settled, self._at_least = emit, ended, settled, at_least
        self._turns, self._count, self._scored = 0, 0, -1
        self._scores: dict[str, float] = {}
        self._set_up_fleet()
        self._stateful = [prices.stateful for prices in plan.prices]
        # A client's jobs that have not ended, in order.
        self._of: dict[int, list[Job]] = {}
        self._live: Counter[int] = Counter()
        self._under_way = 0
        # Late jobs that wrote a state which the caller has not been told to keep yet.
        self._late: list[Job] = []
        # Jobs that have ended since an upload last arrived, and those that are not charged yet.
        self._in_vain = 0
        self._over: list[Job] = []
        self._ledger = ledger or Ledger(len(plan.clients))
        self._ledger.catch_up = self._charge
        self._change, self._back = self.env.event(), self.env.event()
        self._back_s = -math.inf
        self.checks = Checks(self, stale=plan.scenario.server.policy.merges_stale())
        built, build = plan.scenario.server.selector.build(self), plan.scenario.server.selector.build
        self._selector = returned(built, Selector, build, "a Selector", RunError)
        learns = type(self._selector).observe is not Selector.observe
        self._unobserved: list[np.ndarray] | None = [] if learns else None

    def _set_up_fleet(self) -> None:
        plan, fleet, clients = self.plan, self.plan.fleet, self.plan.clients
        self._moves = not isinstance(fleet.availability, Always)
        self.pauses = self._moves and fleet.on_leave == "pause"
        self.loses = self._moves and fleet.on_leave == "lose"
        self._checks_at_end = self._moves and fleet.on_leave == "check-at-end"
        self.speeds = FleetCurve(fleet.speed, clients, plan.scenario.seed)
        self._timetable = fleet.availability.timetable(clients, plan.scenario.seed)
        self._batteries = self._timetable if isinstance(self._timetable, Charging) else None
        self._presence = Presence(self._timetable, len(clients), self._moved)
        self._free = clients.admitted.copy()
        self._candidates = Candidates(len(clients))
        if not self._moves:
            self._presence.there[:] = True
            self._presence.until_s[:] = self._presence.next_s = math.inf
            self._moved(self.clients)
        self._kind = clients.kind.tolist()
        # By exchange and kind.
        self._prices: dict[tuple[int, int], Demand] = {}
        self._ahead = [Ahead(plan, prices.exchange) for prices in plan.prices]
        self.links: Shared | Own = Shared(plan, self.env) if any(shared(plan)) else Own()
        self._tails = Tails(plan)
        # The states of clients' speeds when their last jobs had worked, or ended, and when that was.
        self._heat: dict[int, tuple[States, float]] = {}

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
        """How long jobs take on links of their own at mean rates, without jitter, pauses or throttling."""
        demand = exchange.demand.taken(self.plan.clients.kind[clients])
        seconds: Floats = demand.down_s + demand.work_s * self.plan.clients.slowdown[clients] + demand.up_s
        return seconds

    def battery(self, clients: Ints) -> Floats:
        """The level of clients' batteries now, from 0 to 1; a ``RunError`` if the fleet has none."""
        if self._batteries is None:
            hint = "give it availability: {name: charging}"
            raise RunError("the fleet has no batteries", where="fleet.availability", hint=hint)
        self._drain()
        return self._batteries.level(clients, np.full(len(clients), self.env.now))

    # What a policy does.

    def candidates(self) -> Ints:
        """The clients that are free and available now, in order."""
        return self.free().array()

    def free(self) -> Candidates:
        """The candidates as a set that follows the world, without going through all of them."""
        if self._moves:
            self._drain()
            self._presence.advance(self.env.now)
        return self._candidates

    def invite(
        self, exchange: Prices, *, count: int | None = None, factor: float = 1.0
    ) -> Generator[simpy.Event, Any, Ints]:
        """Waits until a client is free and available; returns who takes part in an exchange now.

        All who can, or those whom the selector chooses: ``count`` times ``factor``, rounded down but at least
        one, where ``count`` is by default the scenario's number of participants.

        Raises:
            RunError: nobody will ever be available again, or the selector did not do its part.
        """
        while not len(candidates := self.free()):
            yield self.change()
        participants = count or self.plan.scenario.server.participants
        if exchange.everyone or participants is None:
            return candidates.array()
        return self.choose(max(1, int(min(participants * factor, len(candidates)))))

    def choose(self, count: int) -> Ints:
        """The selector's choice of ``count`` of the candidates now, in order; all if there are no more.

        Raises:
            RunError: the selector returned too few or too many, one twice, or others.
        """
        candidates = self.free()
        if count >= len(candidates):
            return candidates.array()
        places = self._selector.cohort_places(count, len(candidates))
        if places is not None:
            return candidates.at(places)
        return self.checks.chosen(self._selector.select, count, candidates)

    def dispatch(self, exchange: str, clients: ArrayLike, *, finish_by: float | None = None) -> list[Job]:
        """Starts the next job of each client, from the current version.

        Args:
            clients: a client, or several different ones.
            finish_by: when the uploads are due, in virtual seconds: who would be late stops after the last
                optimizer step that leaves time for the upload. Who cannot do one step goes on to the end.

        Raises:
            RunError: the exchange or a client is unknown, a client was refused, is not available, or its last
                job has not arrived or been discarded yet; or job after job ended, and no upload arrived.
        """
        who: list[int] = np.atleast_1d(np.asarray(clients, dtype=np.int64)).tolist()
        self.checks.free(exchange, who)
        if self._in_vain > max(_MOST_IN_VAIN, _MOST_IN_VAIN_EACH * (len(who) + len(self.open))):
            raise RunError(
                f"the last {self._in_vain} jobs were lost or late, and no upload has arrived since",
                where=f"policy {self.plan.scenario.server.policy.name}",
                hint="see the fleet's failures and availability; a timeout or a deadline may be too short",
            )
        place = next(at for at, prices in enumerate(self.plan.prices) if prices.exchange == exchange)
        self._turns += 1
        batteries: Any = None
        if self._batteries is not None and (self.pauses or self.loses or self._checks_at_end):
            batteries = self._batteries.batteries(np.array(who))[:, None]
        stays_s = self._presence.until_s[who].tolist()
        return [
            self._start(client, place, finish_by, stay_s, None if batteries is None else batteries[at])
            for at, (client, stay_s) in enumerate(zip(who, stays_s, strict=True))
        ]

    def _start(
        self, client: int, exchange: int, finish_by: float | None, stays_s: float, battery: np.ndarray | None
    ) -> Job:
        now_s, failures, kind = self.env.now, self.plan.fleet.failures, self._kind[client]
        if (exchange, kind) not in self._prices:
            demand = self.plan.prices[exchange].demand.taken(kind)
            self._prices[exchange, kind] = Demand._make(np.asarray(one).item() for one in demand)
        price = self._prices[exchange, kind]
        nth, factor, sends, crashes_at, lives_s = self._ahead[exchange].take(client)
        # An upload without bytes cannot be corrupted.
        most = 1 + failures.retries if price.up_bytes else math.inf
        heat, since_s = self._heat.get(client, (self.speeds.idle, now_s))
        job = Job(
            world=self,
            price=price,
            job=self._count,
            client=client,
            kind=kind,
            exchange=exchange,
            round=self.round,
            version=self.version,
            nth=int(nth),
            steps=price.steps,
            dispatched_turn=self._turns,
            dispatched_s=now_s,
            tail_since_s=self._tails.since_s(client),
            amount_s=price.work_s * factor,
            sends=int(min(sends, most)) if price.up_bytes else 1,
            given_up=sends > most,
            stays_s=stays_s,
            lost_s=now_s + min(lives_s, math.inf if failures.timeout is None else failures.timeout),
            crashes_at=crashes_at,
            finish_by=finish_by,
            heat=self.speeds.after(client, heat, since_s, now_s, working=False) if self.speeds else heat,
            battery=battery,
        )
        self._count += 1
        mine = self._of.setdefault(client, [])
        if mine and mine[-1].next_s == math.inf:
            # It waits to be merged.
            mine[-1].next_s = now_s
        mine.append(job)
        self.open[job.job] = job
        self._live[self.version] += 1
        self._under_way += 1
        self._free[client] = False
        self._candidates.put(client, inside=False)
        # A job's life needs none of the care that a policy's processes do.
        job.process = simpy.Process(self.env, job.life())
        return job

    def ended(self, jobs: Sequence[Job], count: int | None = None) -> simpy.Event:
        """An event: ``count`` of the jobs, or all, have arrived, or none of them is on its way any more."""

        def enough(events: Sequence[simpy.Event], over: int) -> bool:
            if over == len(events):
                return True
            return count is not None and over >= count and sum(job.arrived for job in jobs) >= count

        return Condition(self.env, enough, [job.process for job in jobs])

    def change(self, *, clients: bool = True) -> simpy.Event:
        """An event: a job arrives or ends or, unless ``clients`` is false, somebody who was away may be back.

        Raises:
            RunError: neither will ever happen.
        """
        self.free()
        waits = clients and self._moves and self._back_at() < math.inf
        if not (self._under_way or waits):
            raise RunError(
                f"nobody can be asked any more after {self.env.now:.6g} s of virtual time",
                where="fleet.availability",
                hint="no client will be available again; see the fleet's availability",
            )
        if self._change.triggered:
            self._change = self.env.event()
        return self.env.any_of([self._change, self._back] if waits else [self._change])

    def _back_at(self) -> float:
        """When somebody who is away may be back; ``_back`` happens then."""
        back_s = self._presence.next_s
        if not self._under_way:
            # The next change of a client that can be asked at all, not of any.
            away = self.clients[~self._presence.there[self.clients]]
            back_s = float(self._presence.until_s[away].min(initial=math.inf))
        if back_s != self._back_s or self._back.processed:
            self._back_s = back_s
            self._back = self.env.at(back_s, LATER) if back_s < math.inf else self.env.event()
        return back_s

    def discard(self, jobs: Iterable[Job], kind: Kind) -> simpy.Event:
        """Ends jobs that will not be merged, wherever they are; what they cost so far is charged.

        Late work keeps the state that it wrote for its client. A job that was cut or lost stays so.

        Args:
            jobs: in flight, or arrived and not merged.
            kind: LATE, LOST or CUT.

        Returns:
            An event of the same time: all have ended, and their clients are free.
        """
        some = list(jobs)
        self.checks.ends_once(some, kind)
        some = [job for job in some if job.open]
        under_way = [job for job in some if job.in_flight]
        if some:
            self._turns += 1
        ending = ENDINGS.index(kind), self._turns
        for job in some:
            if job.in_flight:
                job.process.interrupt(ending)
            else:
                self._end(job, *ending)
        self._drain()
        return self.ended(under_way)

    def merge(
        self,
        exchange: str,
        jobs: Iterable[Job],
        *,
        scales: Callable[[int], float] | None = None,
        correction: Correction = "move",
        equal: bool = False,
    ) -> Ask:
        """Waits for the server's work on jobs that arrived, asks for their merge, and makes a new version.

        Args:
            scales: staleness in versions -> how much of an update counts; None is all of each.
            equal: whether all weigh the same in averages; otherwise by their samples.

        Raises:
            RunError: the policy does what it must not; see ``Checks``.
        """
        some = sorted(jobs, key=_by_client)
        self.checks.merge(exchange, some, correction, self.version - self._round_from)
        work = self.plan.server_work
        cost = None if work is None else work.price(exchange, len(some))
        if cost is not None:
            yield self.env.timeout(cost.seconds)
            self.checks.ends_once(some, Kind.MERGED)
        base, self.version = self.version, self.version + 1
        self._record(Kind.MERGED, exchange=exchange)
        for job in some:
            self._end(job, MERGED, self._turns)
        last = max(some, key=attrgetter("arrived_s", "job"), default=None)
        samples = self.plan.clients.samples
        return (
            yield from self._ask(
                Merge(
                    **self._place(),
                    regular=self.serving,
                    exchange=exchange,
                    merged_rows=partial(rows_of, some),
                    weights=tuple(1.0 if equal else float(samples[job.client]) for job in some),
                    scales=tuple(
                        1.0 if scales is None else float(scales(base - job.version)) for job in some
                    ),
                    correction=correction,
                    slowest=-1 if last is None else last.client,
                    live_versions=tuple(
                        sorted({self.version, *self._live, *(job.version for job in self._late)})
                    ),
                    cost=cost,
                )
            )
        )

    def collect(self, exchange: Prices) -> Ask:
        """One exchange with its cohort: dispatches all jobs, waits for all and merges those that arrive."""
        clients = yield from self.invite(exchange)
        jobs = self.dispatch(exchange.exchange, clients)
        yield self.ended(jobs)
        return (yield from self.merge(exchange.exchange, [job for job in jobs if job.arrived]))

    def end_round(self) -> Process:
        """Ends a round; evaluates every ``evaluate.every`` rounds and after the last."""
        ended = self.round + 1
        stopped = self._reached(ended)
        in_turn = ended % self.plan.scenario.evaluate.every == 0
        if stopped or in_turn:
            yield from self.evaluate(in_turn=in_turn)
            stopped = self._accurate() or stopped
        self.round, self.stopped, self._round_from = ended, stopped, self.version

    def _reached(self, rounds: int) -> str | None:
        """The first limit that is met, of those that need no accuracy, after so many rounds."""
        until = self.plan.scenario.server.until
        if until.rounds is not None and rounds >= until.rounds:
            return "rounds"
        if until.time is not None and self.now_s >= until.time:
            return "time"
        if until.bytes is None and until.energy is None:
            return None
        spent = self.totals()
        if until.bytes is not None and spent.down_bytes + spent.up_bytes >= until.bytes:
            return "bytes"
        if until.energy is not None and (spent.energy.joules or 0.0) >= until.energy:
            return "energy"
        return None

    def _accurate(self) -> str | None:
        """Whether the last evaluation of the first model that is evaluated met the scenario's accuracy."""
        accuracy, models = self.plan.scenario.server.until.accuracy, self.plan.scenario.evaluate.models
        score = next((self._scores[model] for model in models if model in self._scores), None)
        return "accuracy" if accuracy is not None and score is not None and score >= accuracy else None

    # What the driver does.

    def totals(self) -> Totals:
        """What all clients have moved, done and used until now, also for jobs in flight."""
        self._drain()
        now_s = self.env.now
        jobs = [(job.in_flight, job.as_if_ended(now_s)) for job in self.open.values()]
        rows = rows_of([job for _, job in jobs])
        add_joules(rows, self.plan)
        return self._ledger.totals(
            rows, self._tails.open_j(now_s, [job for under_way, job in jobs if under_way])
        )

    def evaluate(self, *, in_turn: bool = True) -> Process:
        """Asks for the current version's scores, once for each version; see ``Evaluate`` for ``in_turn``."""
        if self.version != self._scored:
            self._scored = self.version
            self._record(Kind.EVALUATED)
            need = Evaluate(**self._place(), regular=in_turn and self.serving, totals_of=self.totals)
            feedback = yield from self._ask(need)
            self._scores = dict(feedback.scores)

    def refuse(self) -> None:
        """Records who cannot take part."""
        for client, refusal in self.plan.refused():
            self._record(Kind.REFUSED, exchange=refusal.exchange, client=client)

    def cut(self) -> simpy.Event:
        """Ends every job that is in flight, or has arrived and was not merged; see ``discard``."""
        return self.discard(self.open.values(), Kind.CUT)

    def close(self) -> None:
        """Ends the run: cuts every job, and settles the tails that are open."""
        self.cut()
        # Interrupts come before all else: no process of the policy's own is told, and asks anybody.
        while self.open:
            self.env.step()
        self._charge()
        tails = self._tails.settled(self.env.now)
        self._ledger.spend(tails["client"], tails["joules"])
        if self._settled is not None and len(tails):
            self._settled(tails)

    # What a job asks.

    def there(self, job: Job, t_s: float) -> tuple[bool, float]:
        """Whether a job's client is there at a time, and until when that holds at least."""
        if job.battery is None or self._batteries is None:
            return self._timetable.of_one(job.client, t_s)
        # A job's times are those of the battery at its dispatch, whatever is taken from it meanwhile.
        there, until_s = self._batteries.at(np.array([job.client]), np.array([t_s]), job.battery)
        return bool(there[0]), float(until_s[0])

    def in_vain(self, job: Job, t_s: float) -> bool:
        """Whether an upload arrives in vain, since it is checked, and the client is away then.

        A client that leaves at the very moment is still there.
        """
        if not self._checks_at_end or t_s < job.stays_s:
            return False
        return not (self.there(job, t_s)[0] or self.there(job, math.nextafter(t_s, -math.inf))[0])

    def rested(self, job: Job, now_s: float) -> States:
        """The states of a job's client's speeds, if it has rested since the stage began."""
        if not self.speeds:
            return job.heat
        return self.speeds.after(job.client, job.heat, job.began_s, now_s, working=False)

    def cools(self, job: Job, now_s: float) -> None:
        """A job's client works no more."""
        if self.speeds:
            self._heat[job.client] = job.heat, now_s

    def home(self, job: Job) -> None:
        """A job arrived, or was broken off: its client is free."""
        client, now_s = job.client, self.env.now
        self._under_way -= 1
        for event in job.watches:
            self.env.cancel(event)
        self._tails.leave(job, now_s)
        self._free[client] = True
        self._candidates.put(client, inside=bool(self._presence.there[client]))
        if job.ending:
            self.cools(job, now_s)
            self._end(job, job.ending, job.ended_turn)
        if not self._change.triggered:
            self._change.succeed()

    def _moved(self, clients: Ints) -> None:
        self._candidates.put_all(clients, self._presence.there[clients] & self._free[clients])

    def _end(self, job: Job, ending: int, turn: int) -> None:
        """The one end of a job, now."""
        job.ending, job.ended_s, job.ended_turn = ending, self.env.now, turn
        job.into_version = self.version if ending == MERGED else -1
        del self.open[job.job]
        mine = self._of[job.client]
        mine.remove(job)
        if not mine:
            del self._of[job.client]
        self._live[job.version] -= 1
        if not self._live[job.version]:
            del self._live[job.version]
        # A job that was lost arrives no more, even if it would have.
        self._in_vain = self._in_vain + 1 if ending == LOST or math.isnan(job.arrived_s) else 0
        if ENDINGS[ending] is Kind.LATE and self.wrote(job):
            self._late.append(job)
        self._over.append(job)

    def wrote(self, job: Job) -> bool:
        """Whether a job has written a state for its client."""
        return self._stateful[job.exchange] and not math.isnan(job.worked_s)

    def older(self, job: Job) -> list[Job]:
        """A job's client's earlier ones that have not ended and wrote a state."""
        return [other for other in self._of.get(job.client, ()) if other.job < job.job and self.wrote(other)]

    def _complete(self) -> np.ndarray:
        """Late jobs whose states can be kept now: no older job of their client waits."""
        if not self._late:
            return _NONE
        ready = [job for job in self._late if not self.older(job)]
        self._late = [job for job in self._late if self.older(job)]
        return rows_of(ready)

    def _drain(self) -> None:
        """Takes what jobs that ended used from their clients' batteries, now that the server learns of it."""
        if self._batteries is not None:
            self._charge()

    def _charge(self) -> None:
        """Charges the jobs that ended since the last call, and hands them over."""
        if not self._over:
            return
        rows = rows_of(self._over)
        self._over.clear()
        add_joules(rows, self.plan)
        if self._batteries is not None:
            above_idle = (rows[name] for name in JOULES if not name.endswith("idle_j"))
            used_j = np.nan_to_num(sum(above_idle, np.zeros(len(rows))))
            # Jobs of one client may end together.
            clients, places = np.unique(rows["client"], return_inverse=True)
            of_each = np.zeros(len(clients))
            np.add.at(of_each, places, used_j)
            self._batteries.spend(clients, np.full(len(clients), self.env.now), of_each)
            self._presence.forget(clients)
        self._ledger.add(rows)
        if self._unobserved is not None:
            self._unobserved.append(rows)
        self._ended(rows)

    def _ready(self) -> np.ndarray:
        # Who is due by a time may still leave steps out, which is decided when its work begins.
        return rows_of([job for job in self.open.values() if job.finish_by is None or job.stage != DOWN])

    def _record(self, kind: Kind, *, exchange: str = "", client: int = -1) -> None:
        """Emits an event that belongs to no job."""
        self._turns += 1
        round_ = -1 if kind is Kind.REFUSED else self.round
        self._emit(ServerEvent(self._turns, self.now_s, kind, exchange, round_, client, self.version))

    def _place(self) -> dict[str, Any]:
        """What a need says of the version and of the jobs that are under way."""
        return {
            "plan": self.plan,
            "version": self.version,
            "round": self.round,
            "t_s": self.now_s,
            "late_rows": self._complete(),
            "ready_rows": self._ready,
        }

    def _ask(self, need: Need) -> Ask:
        if self._batteries is not None or len(self._over) >= self._at_least:
            self._charge()
        answered = self.env.event()
        self.needs.append((need, answered))
        feedback: Feedback = yield answered
        if self._unobserved is not None:
            self._charge()
        if self._unobserved:
            self._selector.observe(stacked(self._unobserved), feedback.jobs)
            self._unobserved.clear()
        return feedback
