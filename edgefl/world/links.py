"""How transfers go: on links that clients have to themselves, and on links that are shared or change.

Both kinds have ``carry``, the part of a job's life that is a transfer, and ``charge_until``, which charges
what the transfers in progress have spent.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import simpy
from simpy.events import URGENT

from edgefl.core.link import Link, Rates
from edgefl.core.link_traces import WAYS
from edgefl.core.plan import Plan
from edgefl.world.clock import LOSS, Clock, Process
from edgefl.world.job import DOWN, GONE, UP, WORK, Job
from edgefl.world.pool import Flow, Pool

_INF = math.inf
# A rounding error below the end of a transfer, or below a whole byte, counts as it.
_ROUNDING, _BYTE = 1e-9, 1e-6
AWAY = "away"
"""The cause of an interrupt that pauses transfers: their client leaves, and is waited for."""


class Own:
    """Links that are their clients' own and do not change: how long a transfer takes is known."""

    def carry(self, job: Job, way: int) -> Process:
        job.begin(way)
        price = job.price
        if way == DOWN:
            amount_s, moved = price.down_s, price.down_bytes
        else:
            amount_s, moved = price.up_s * job.sends, price.up_bytes * job.sends
        end = job.goes(job.began_s, amount_s, working=False)
        yield job.until(end.t_s)
        if way == UP:
            job.check_in_vain(end.t_s)
        job.heat = end.heat
        job.charge(way, end.busy_s, moved)

    def charge_until(self, job: Job, now_s: float) -> None:
        way, price = job.stage, job.price
        amount_s = price.down_s if way == DOWN else price.up_s * job.sends
        end = job.goes(job.began_s, amount_s, working=False, until_s=now_s)
        job.heat = end.heat
        job.charge(way, end.busy_s, job.moved(way, end.busy_s))


class Carriage:
    """A job's transfers in one direction, on links that are shared or change.

    Attributes:
        size, delay_s, bps, once_s, times: of each transfer, alone; and how many there are.
        completed: how many are complete.
        left_bits: of the next one, when bytes last began or ceased to flow; None before it begins.
        left_delay_s: of its handshakes, when they last began or were held up; None once they are over.
        held_s: when they last began or went on.
        flow: whose bytes flow now.
        alone: whether nothing has held up any.
        wakes: the event that its job waits for while bytes flow, or its client is away.
        paused: whether its client is away.
    """

    __slots__ = (
        "_began_s", "_busy_s", "_since_s", "alone", "bps", "completed", "delay_s", "flow", "held_s",
        "left_bits", "left_delay_s", "once_s", "paused", "size", "times", "wakes",
    )  # fmt: skip
    flow: Flow | None
    left_bits: float | None
    left_delay_s: float | None

    def __init__(self, job: Job, way: int, env: Clock) -> None:
        price, self.times = job.price, 1 if way == DOWN else job.sends
        if way == DOWN:
            self.size, self.delay_s, self.bps = price.down_bytes, price.down_delay_s, price.down_bps
        else:
            self.size, self.delay_s, self.bps = price.up_bytes, price.up_delay_s, price.up_bps
        self.once_s = price.down_s if way == DOWN else price.up_s
        self.completed, self.flow, self.left_bits, self.left_delay_s = 0, None, None, None
        self._began_s = self._since_s = self.held_s = env.now
        self._busy_s, self.alone, self.paused = 0.0, True, False
        self.wakes = env.event()

    def begin(self, now_s: float, trace: "ClientTrace | None") -> None:
        """The next transfer begins with its handshakes."""
        self.left_bits, self.left_delay_s = 8.0 * self.size, self.delay_s
        if trace is not None and self.size:
            self.left_delay_s, _ = trace.rates.delay_s.until(now_s, trace.offset_s)
            self.alone = False

    @property
    def alone_until_s(self) -> float | None:
        """When the transfer in progress ends if nothing has held up any, nor does."""
        return self._began_s + self.once_s * (self.completed + 1) if self.alone else None

    def pause(self, now_s: float) -> None:
        if self.left_delay_s is not None:
            self.left_delay_s -= now_s - self.held_s
        self._busy_s = self.busy_s(now_s)
        self.alone, self.paused = False, True

    def resume(self, now_s: float) -> None:
        self._since_s, self.paused = now_s, False

    def busy_s(self, now_s: float) -> float:
        """For how long its client has been at it."""
        return self._busy_s if self.paused else self._busy_s + (now_s - self._since_s)


class Shared:
    """Links that transfers share max-min fairly, the server's and cells', and those that follow traces."""

    def __init__(self, plan: Plan, env: Clock) -> None:
        server, cells = plan.scenario.server, [plan.fleet.cells[name] for name in plan.clients.cells]
        self._ways = (
            Way(env, Pool(server.downlink or _INF, [cell.down.known for cell in cells])),
            Way(env, Pool(server.uplink or _INF, [cell.up.known for cell in cells])),
        )
        self._cells, self._traces, self._env = plan.clients.cell.tolist(), ClientTraces(plan), env

    def carry(self, job: Job, way: int) -> Process:
        env, world = self._env, job.world
        job.begin(way)
        one = job.carriage = Carriage(job, way, env)
        self._watch(job, way)
        while one.completed < one.times:
            try:
                yield from self._transfer(job, one)
                one.completed, one.left_bits = one.completed + 1, None
            except simpy.Interrupt as interrupt:
                self._ways[way].stop(one)
                if interrupt.cause != AWAY:
                    raise
                one.pause(env.now)
                one.wakes = env.event()
                yield one.wakes
                one.resume(env.now)
        if way == UP:
            job.check_in_vain(env.now)
        seconds = one.once_s * one.times if one.alone else one.busy_s(env.now)
        job.charge(way, seconds, one.size * one.times)
        job.heat = world.rested(job, env.now)

    def _transfer(self, job: Job, one: Carriage) -> Process:
        """What is left of the next transfer: handshakes, then bytes at the rate that the link has."""
        env, way = self._env, self._ways[job.stage]
        trace = self._traces.of(job.client, job.stage)
        if one.left_bits is None:
            one.begin(env.now, trace)
        if one.left_delay_s is not None:
            one.held_s = env.now
            yield env.at(one.held_s + one.left_delay_s)
            one.left_delay_s = None
        while one.left_bits and one.left_bits > _ROUNDING * 8 * one.size:
            cap_bps = one.bps
            one.wakes = env.event()
            if trace is not None:
                cap_bps, until_s = trace.rates.bps.until(env.now, trace.offset_s)
                if until_s < _INF:
                    env.at(until_s).callbacks.append(partial(self._change, way, one, one.wakes))
            if cap_bps:
                one.flow = Flow(one, cap_bps, self._cells[job.client], one.alone_until_s)
                way.start(one.flow, one.left_bits)
            yield one.wakes

    @staticmethod
    def _change(way: "Way", one: Carriage, wakes: simpy.Event, _: simpy.Event) -> None:
        """The rate of a client's link changes, if its bytes still wait for that."""
        if one.wakes is wakes and not wakes.triggered:
            way.stop(one)
            wakes.succeed()

    def charge_until(self, job: Job, now_s: float) -> None:
        one, way = job.carriage, job.stage
        if one is None:
            raise AssertionError("a transfer is charged that did not begin")
        busy_s, flow = one.busy_s(now_s), one.flow
        if one.completed == one.times:
            moved = one.size * one.times
            busy_s = min(busy_s, one.once_s * one.times) if one.alone else busy_s
        elif one.alone and (flow is None or flow.alone_s is not None):
            moved = job.moved(way, busy_s)
        else:
            bits, left = 8.0 * one.size, one.left_bits
            left = self._ways[way].pool.left(flow, now_s) if flow else bits if left is None else left
            moved = one.completed * one.size + min(one.size, int((bits - left) / 8 + _BYTE))
        job.charge(way, busy_s, moved)
        job.heat = job.world.rested(job, now_s)

    def _watch(self, job: Job, way: int) -> None:
        """Interrupts a job's process when it is given up or its device crashes, and as its client leaves."""
        self._at(job.lost_s, job, self._lose)
        if way == DOWN and (job.world.pauses or job.world.loses):
            self._at(job.stays_s, job, self._look)

    def _at(self, t_s: float, job: Job, then: Callable[[Job, simpy.Event], None]) -> None:
        """Does something at a time if a job is still under way."""
        if t_s < _INF:
            event = self._env.at(t_s, LOSS)
            event.callbacks.append(partial(then, job))
            job.watches.append(event)

    @staticmethod
    def _lose(job: Job, _: simpy.Event) -> None:
        job.process.interrupt(GONE)

    def _look(self, job: Job, _: simpy.Event) -> None:
        """A job's client may leave, or be back."""
        there, until_s = job.world.there(job, self._env.now)
        if not there and (job.world.loses or until_s == _INF):
            job.process.interrupt(GONE)
            return
        self._at(until_s, job, self._look)
        if job.stage == WORK or job.carriage is None or there != job.carriage.paused:
            return
        if there:
            job.carriage.wakes.succeed()
        else:
            job.process.interrupt(AWAY)


class Way:
    """One direction of shared links: SimPy is told when the next flow ends."""

    def __init__(self, env: Clock, pool: Pool) -> None:
        self.pool, self._env = pool, env
        self._wake: simpy.Event | None = None
        self._wake_s = _INF

    def start(self, flow: Flow, bits: float) -> None:
        """Bytes begin to flow; once they have, their carriage is woken."""
        self.pool.start(flow, bits, self._env.now)
        self._sleep()

    def stop(self, one: Carriage) -> None:
        if one.flow is not None:
            one.alone = one.alone and one.flow.alone_s is not None
            one.left_bits = self.pool.stop(one.flow, self._env.now)
            one.flow = None
            self._sleep()

    def _sleep(self) -> None:
        if self.pool.next_s != self._wake_s:
            if self._wake is not None:
                # What was to end then ends at another time.
                self._env.cancel(self._wake)
            self._wake, self._wake_s = None, self.pool.next_s
            if self._wake_s < _INF:
                self._wake = self._env.at(self._wake_s, URGENT)
                self._wake.callbacks.append(self._finish)

    def _finish(self, _: simpy.Event) -> None:
        self._wake, self._wake_s = None, _INF
        for flow in self.pool.finish():
            one: Carriage = flow.owner
            one.alone, one.left_bits, one.flow = flow.alone_s is not None, 0.0, None
            one.wakes.succeed()
        self._sleep()


class ClientTrace(NamedTuple):
    """One direction of the trace that a client's link follows, and the client's place in it at time 0."""

    rates: Rates
    offset_s: float


class ClientTraces:
    """The traces of a run's clients."""

    def __init__(self, plan: Plan) -> None:
        clients = plan.clients
        # Of clients whose links change: the link, which of its traces, and where in it.
        self._dealt: dict[int, tuple[Link, int, float]] = {}
        for place, name in enumerate(clients.links):
            link = plan.fleet.links.get(name)
            if link is not None and link.trace is not None:
                mine = np.flatnonzero(clients.link == place)
                which, offset_s = link.trace.dealt(plan.scenario.seed, mine)
                each = zip(mine.tolist(), which.tolist(), offset_s.tolist(), strict=True)
                self._dealt |= {client: (link, trace, offset) for client, trace, offset in each}
        self._rates: dict[tuple[int, int, int], Rates] = {}

    def of(self, client: int, way: int) -> ClientTrace | None:
        """A client's trace in a direction, 0 for down and 1 for up; None if its link does not change."""
        dealt = self._dealt.get(client)
        if dealt is None:
            return None
        link, which, offset_s = dealt
        key = id(link), which, way
        if key not in self._rates:
            self._rates[key] = link.rates(which, WAYS[way])
        return ClientTrace(self._rates[key], offset_s)
