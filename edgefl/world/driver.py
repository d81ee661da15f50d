"""The world as a generator: it knows time, the caller knows learning.

It steps SimPy until a process asks something, yields the ``Need``, and is sent the answer in zero virtual
time. Events go to ``emit`` as they happen.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TypeAlias

import simpy
from numpy import flatnonzero

from edgefl.core import seeds
from edgefl.core.catalogue import load
from edgefl.core.errors import RunError
from edgefl.core.event import NOTHING, Charge, Event, Job, Kind
from edgefl.core.fleet import Fixed
from edgefl.core.plan import Plan
from edgefl.core.price import Draw, times, total


@dataclass(frozen=True)
class Merge:
    """The server wants to merge.

    Attributes:
        version: the version that this makes.
        exchange: the exchange's name.
        merged: the jobs that go in, in the order of their clients.
        unmerged_completed: jobs that were finished but are not merged.
        ready: jobs that were dispatched and not merged yet, each of a version that exists; an engine may
            train them ahead.
    """

    version: int
    exchange: str
    merged: tuple[Job, ...]
    unmerged_completed: tuple[Job, ...] = ()
    ready: tuple[Job, ...] = ()


@dataclass(frozen=True)
class Evaluate:
    """The server wants its current version scored."""

    version: int
    round: int
    t_s: float


Need: TypeAlias = Merge | Evaluate


@dataclass(frozen=True)
class Feedback:
    """The caller's answer: scalars of a merge's jobs or of an evaluation, by name."""

    scalars: dict[str, float] = field(default_factory=dict)


class World:
    """What a policy may do: run clients, ask for merges and evaluations, record events.

    Attributes:
        env: SimPy's clock.
        plan: the plan.
        version: the current server version, from 0.
        clients: the admitted clients, in order.
    """

    def __init__(self, plan: Plan, emit: Callable[[Event], None]) -> None:
        self.env = simpy.Environment()
        self.plan = plan
        self.version = 0
        self.clients = [int(client) for client in flatnonzero(plan.clients.admitted)]
        self.asks: deque[tuple[Need, simpy.Event]] = deque()
        self._emit = emit
        self._events = 0
        self._jobs = 0
        self._scored = -1
        self._nth: dict[tuple[str, int], int] = {}
        self._open: dict[int, Job] = {}

    def record(self, kind: Kind, *, exchange: str = "", round_: int = -1, client: int = -1) -> None:
        """Emits an event now that belongs to no job."""
        self._emit(
            Event(self._events, self.env.now, kind, exchange, round_, client, -1, self.version, NOTHING)
        )
        self._events += 1

    def record_job(self, kind: Kind, job: Job, cost: Charge = NOTHING) -> None:
        """Emits an event now about a job."""
        seq, now = self._events, self.env.now
        self._emit(Event(seq, now, kind, job.exchange, job.round, job.client, job.id, job.version, cost))
        self._events += 1

    def job(self, exchange: str, client: int, round_: int) -> Job:
        """The next job of a client, from the current version."""
        nth = self._nth.get((exchange, client), 0)
        self._nth[exchange, client] = nth + 1
        root = self.plan.scenario.seed
        seed = seeds.derive(root, "job", client=client, exchange=exchange, nth=nth)
        steps = int(self.plan.price(exchange).steps[client])
        job = Job(self._jobs, client, exchange, self.version, round_, nth, seed, steps)
        self._jobs += 1
        return job

    def work(self, job: Job) -> simpy.events.ProcessGenerator:
        """A SimPy process: one client's job from dispatch to arrival."""
        prices, client = self.plan.price(job.exchange), job.client
        draw = prices.draw(client)
        slow = float(self.plan.clients.slowdown[client]) * self._jitter(job)
        self.record_job(Kind.DISPATCHED, job)
        self._open[job.id] = job
        down_s, down = float(prices.down_s[client]), int(prices.down_bytes[client])
        yield self.env.timeout(down_s)
        received = _charge(down_s, draw, draw.receive_j, down=down)
        self.record_job(Kind.RECEIVED, job, received)
        # A slower clock draws the same power for longer.
        compute_s = float(prices.compute_s[client]) * slow
        yield self.env.timeout(compute_s)
        up_s, up = float(prices.up_s[client]), int(prices.up_bytes[client])
        compute_j, tail_j = times(draw.compute_w, compute_s), draw.first_tail_j(down > 0, compute_s, up > 0)
        worked = _charge(compute_s, draw, compute_j, flops=int(prices.flops[client]), tail_j=tail_j)
        self.record_job(Kind.WORKED, job, worked)
        yield self.env.timeout(up_s)
        arrived = _charge(up_s, draw, draw.transmit_j, up=up, tail_j=draw.last_tail_j(up > 0))
        self.record_job(Kind.ARRIVED, job, arrived)

    def _jitter(self, job: Job) -> float:
        if isinstance(self.plan.jitter, Fixed):
            return self.plan.jitter.value
        root = self.plan.scenario.seed
        rng = seeds.generator(root, "jitter", client=job.client, exchange=job.exchange, nth=job.nth)
        return float(self.plan.jitter.draw(rng, 1)[0])

    def merge(self, exchange: str, jobs: list[Job], round_: int) -> simpy.events.ProcessGenerator:
        """Asks for a merge of the jobs; a new version exists when it is answered."""
        self.version += 1
        self.record(Kind.MERGED, exchange=exchange, round_=round_)
        merged = tuple(sorted(jobs, key=lambda job: job.client))
        for job in merged:
            del self._open[job.id]
        yield from self._ask(Merge(self.version, exchange, merged, ready=tuple(self._open.values())))

    def evaluate(self, round_: int) -> simpy.events.ProcessGenerator:
        """Asks for the current version's scores; they do not change, so a version is scored once."""
        if self.version == self._scored:
            return
        self._scored = self.version
        self.record(Kind.EVALUATED, round_=round_)
        yield from self._ask(Evaluate(self.version, round_, self.env.now))

    def _ask(self, need: Need) -> simpy.events.ProcessGenerator:
        answered = self.env.event()
        self.asks.append((need, answered))
        yield answered


def _charge(
    seconds: float,
    draw: Draw,
    active_j: float | None,
    *,
    down: int = 0,
    up: int = 0,
    flops: int = 0,
    tail_j: float | None = 0.0,
) -> Charge:
    idle_j = times(draw.idle_w, seconds)
    return Charge(seconds, down, up, flops, total(active_j, tail_j, idle_j), tail_j, idle_j)


def simulate(plan: Plan, emit: Callable[[Event], None]) -> Generator[Need, Feedback, None]:
    """Runs a plan in virtual time.

    Args:
        plan: the plan.
        emit: is called with every event, in order.

    Yields:
        What the server needs of the caller; each is to be answered with a ``Feedback``.

    Raises:
        RunError: nothing more can happen, and the server still waits.
    """
    world = World(plan, emit)
    for refusal in plan.refusals:
        world.record(Kind.REFUSED, exchange=refusal.exchange, client=refusal.client)
    policy = load("policies", plan.scenario.server.policy.name)
    serving = world.env.process(policy.serve(world, plan.policy))
    while world.env.peek() < math.inf:
        world.env.step()
        while world.asks:
            need, answered = world.asks.popleft()
            feedback = yield need
            answered.succeed(feedback)
    if serving.is_alive:
        raise RunError(
            f"the server waits for ever: nothing happens after {world.env.now:.6g} s of virtual time",
            where=f"policy {plan.scenario.server.policy.name}",
            hint="a slowdown or a jitter may have drawn an infinite time",
        )


def converse(world: Generator[Need, Feedback, None], answer: Callable[[Need], Feedback]) -> None:
    """Runs a world to its end, answering each need as it comes."""
    need = next(world, None)
    while need is not None:
        # Answered outside the try: a StopIteration of the caller's own is no end of the world.
        feedback = answer(need)
        try:
            need = world.send(feedback)
        except StopIteration:
            return
