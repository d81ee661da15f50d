"""The world as a generator: it knows time, the caller knows learning.

It steps SimPy until a process asks something, yields the ``Need``, and is sent the answer in zero virtual
time. Events go to ``emit`` as they happen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import simpy

from edgefl.core import seeds
from edgefl.core.catalogue import load
from edgefl.core.event import NOTHING, Charge, Event, Job, Kind
from edgefl.core.plan import Plan


@dataclass(frozen=True)
class Merge:
    """The server wants to merge.

    Attributes:
        version: the version that this makes.
        exchange: the exchange's name.
        merged: the jobs that go in, in the order of their clients.
        unmerged_completed: jobs that were finished but are not merged.
        ready: jobs in flight whose base version exists; an engine may train ahead.
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
        self.clients = [int(client) for client in np.flatnonzero(plan.clients.admitted)]
        self.asks: deque[tuple[Need, simpy.Event]] = deque()
        self._emit = emit
        self._events = 0
        self._jobs = 0
        self._nth: dict[tuple[str, int], int] = {}

    def record(self, kind: Kind, *, job: Job | None = None, cost: Charge = NOTHING, **where: Any) -> None:
        """Emits an event now, about a job or about the client, version and round given."""
        about = (
            {"exchange": job.exchange, "round": job.round, "client": job.client, "job": job.id, "version": job.version}
            if job
            else {"exchange": "", "round": -1, "client": -1, "job": -1, "version": self.version}
        )
        self._emit(Event(self._events, self.env.now, kind, **{**about, **where}, cost=cost))
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
        slow = float(self.plan.clients.slowdown[client]) * self._jitter(job)
        self.record(Kind.DISPATCHED, job=job)
        down_s = float(prices.down_s[client])
        yield self.env.timeout(down_s)
        received = Charge(down_s, int(prices.down_bytes[client]), 0, 0, _joules(prices.receive_j[client]))
        self.record(Kind.RECEIVED, job=job, cost=received)
        compute_s = float(prices.compute_s[client]) * slow
        yield self.env.timeout(compute_s)
        # A slower clock draws the same power for longer.
        worked = Charge(compute_s, 0, 0, int(prices.flops[client]), _joules(prices.compute_j[client] * slow))
        self.record(Kind.WORKED, job=job, cost=worked)
        up_s = float(prices.up_s[client])
        yield self.env.timeout(up_s)
        arrived = Charge(up_s, 0, int(prices.up_bytes[client]), 0, _joules(prices.transmit_j[client]))
        self.record(Kind.ARRIVED, job=job, cost=arrived)

    def _jitter(self, job: Job) -> float:
        root = self.plan.scenario.seed
        rng = seeds.generator(root, "jitter", client=job.client, exchange=job.exchange, nth=job.nth)
        return float(self.plan.jitter.draw(rng, 1)[0])

    def merge(self, exchange: str, jobs: list[Job], round_: int) -> simpy.events.ProcessGenerator:
        """Asks for a merge of the jobs; a new version exists when it is answered."""
        self.version += 1
        self.record(Kind.MERGED, exchange=exchange, round=round_)
        merged = tuple(sorted(jobs, key=lambda job: job.client))
        yield from self._ask(Merge(self.version, exchange, merged))

    def evaluate(self, round_: int) -> simpy.events.ProcessGenerator:
        """Asks for the current version's scores."""
        self.record(Kind.EVALUATED, round=round_)
        yield from self._ask(Evaluate(self.version, round_, self.env.now))

    def _ask(self, need: Need) -> simpy.events.ProcessGenerator:
        answered = self.env.event()
        self.asks.append((need, answered))
        yield answered


def _joules(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def simulate(plan: Plan, emit: Callable[[Event], None]) -> Generator[Need, Feedback, None]:
    """Runs a plan in virtual time.

    Args:
        plan: the plan.
        emit: is called with every event, in order.

    Yields:
        What the server needs of the caller; each is to be answered with a ``Feedback``.
    """
    world = World(plan, emit)
    for refusal in plan.refusals:
        world.record(Kind.REFUSED, exchange=refusal.exchange, client=refusal.client)
    policy = load("policies", plan.scenario.server.policy.name)
    world.env.process(policy.serve(world, plan.policy))
    while world.env.peek() < float("inf"):
        world.env.step()
        while world.asks:
            need, answered = world.asks.popleft()
            feedback = yield need
            answered.succeed(feedback)
