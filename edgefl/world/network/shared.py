"""Links that are shared, or whose rates change: jobs go from station to station.

One SimPy event wakes the network when the next thing happens to any job. Work in between is timed as on a
direct network, for many jobs at once: what a job's work takes is looked at when the first of those that were
received could have ended it. A transfer that nothing holds up takes as long as on a direct network, to the
bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Protocol, TypeAlias

import numpy as np

from edgefl.core.draws import Floats
from edgefl.core.plan import Bools, Ints, Plan
from edgefl.core.price import Demand
from edgefl.world.clock import Clock
from edgefl.world.network.direct import Transfer, work
from edgefl.world.network.job import DOWN, UP, WORK, Job
from edgefl.world.network.pool import Flow, Pool
from edgefl.world.network.traces import ClientTraces
from edgefl.world.table import Rows, Table
from edgefl.world.tails import Tails
from edgefl.world.timeline import Timeline, crashes_s

# Of one time, what happens to jobs on their own comes after the stations that they reach.
_STATION, _ELSE = 0, 1
# Work may end so much earlier than reckoned, by rounding.
_EARLY = 1 - 1e-9

# The columns of transfers' seconds and bytes, by stage.
_CHARGED = (("receive_s", "down_bytes"), ("transmit_s", "up_bytes"))

_Handler: TypeAlias = Callable[[Job, float], None]
_Due: TypeAlias = tuple[float, int, int, _Handler, Job, int]
# From so many on, what is due is rid of what no longer holds.
_FEW = 64


def _holds(due: _Due) -> bool:
    _, _, _, _, job, step = due
    return not job.over and step in (-1, job.step)


class Leaves(Protocol):
    """Is told that a client's job arrived or was lost."""

    def __call__(self, client: int, *, lost: bool) -> None:
        """Now."""


class Shared:
    """A network on which transfers last as long as others and changing rates make them."""

    def __init__(
        self,
        plan: Plan,
        clock: Clock,
        timeline: Timeline,
        tails: Tails,
        table: Table,
        leaves: Leaves,
        ended: Callable[[int], None],
    ) -> None:
        """Nothing is under way.

        Args:
            plan: the run's.
            clock: the run's.
            timeline: the run's.
            tails: the run's.
            table: the run's.
            leaves: called with the client of each job that arrives or is lost, and whether it is lost, then.
            ended: called with the number of these, once all of one time have.
        """
        self.timeline = timeline
        self._plan, self._clock, self._tails, self._table = plan, clock, tails, table
        self._leaves, self._ended = leaves, ended
        server, cells = plan.scenario.server, plan.fleet.cells
        self._pools = (
            Pool(server.downlink or math.inf, [cells[name].down.known for name in plan.clients.cells]),
            Pool(server.uplink or math.inf, [cells[name].up.known for name in plan.clients.cells]),
        )
        self._traces = ClientTraces(plan)
        self._jobs: dict[int, Job] = {}
        # Times, ranks, an order, what is done, to which job, and the job's step that it belongs to.
        self._agenda: list[_Due] = []
        self._most = _FEW
        self._order = count()
        # Jobs that were received, and by when their work has to be looked at.
        self._received: list[Job] = []
        self._look_s = math.inf
        self._wake_s = math.inf
        self._wakes = 0

    # What the dispatcher does.

    def launch(self, rows: Rows, states: Floats, given_up: Bools, finish_by: float | None) -> None:  # noqa: ARG002
        """See ``Direct.launch``; nothing is known yet."""
        rows["received_s"] = rows["worked_s"] = rows["arrived_s"] = rows["due_s"] = math.inf

    def begin(self, slots: Ints, given_up: Bools, finish_by: float | None) -> None:
        """The jobs in these slots, of one exchange, begin; see ``Direct.launch``."""
        if not len(slots):
            return
        rows, now_s = self._table.take(slots), self._clock.now
        prices, clients = self._plan.prices[int(rows["exchange"][0])], self._plan.clients
        lost_s = np.full(len(rows), np.inf)
        crashes_at = lost_s
        if self.timeline.losing:
            lost_s, crashes_at = self.timeline.drawn_failures(rows, prices.exchange)
        watched = self.timeline.pauses or self.timeline.loses
        looks_s = rows["there_s"] if watched else np.full(len(rows), np.inf)
        jobs = Job.of_each(slots, rows, prices.demand(rows["kind"]), clients.cell, given_up, finish_by)
        times = zip(jobs, lost_s.tolist(), crashes_at.tolist(), looks_s.tolist(), strict=True)
        for job, lost, crashes, looks in times:
            job.crashes_at = crashes
            self._jobs[job.number] = job
            self._at(lost, _ELSE, self._lose, job)
            self._at(looks, _ELSE, self._look, job)
            self._enter(job, DOWN, now_s)
        self._sleep()

    def drop(self, jobs: Ints) -> None:
        """Jobs were broken off."""
        for number in jobs.tolist():
            job = self._jobs.pop(number, None)
            if job is not None:
                self._stop(job, self._clock.now)
                job.over = True
        self._sleep()

    def received(self, rows: Rows, demand: Demand, states: Floats, until_s: Floats) -> Transfer:  # noqa: ARG002
        """See ``Direct.received``; a time is now, or that of a job's loss."""
        busy_s, moved = rows["receive_s"].copy(), rows["down_bytes"].copy()
        for place, job in self._under_way(rows, DOWN):
            busy_s[place], moved[place] = self._progress(job, float(until_s[place]))
        end_s = np.where(np.isnan(rows["received_s"]), until_s, rows["received_s"])
        rested = self.timeline.rested(rows["client"], states, rows["dispatched_s"], end_s)
        return Transfer(busy_s, moved, rested)

    def sent(
        self,
        rows: Rows,
        demand: Demand,  # noqa: ARG002
        start_s: Floats,
        states: Floats,
        until_s: Floats,
    ) -> Transfer:
        """See ``Direct.sent``; a time is now, or that of a job's loss."""
        began = ~np.isnan(rows["worked_s"])
        busy_s, moved = np.where(began, rows["transmit_s"], 0.0), np.where(began, rows["up_bytes"], 0)
        for place, job in self._under_way(rows, UP):
            busy_s[place], moved[place] = self._progress(job, float(until_s[place]))
        return Transfer(busy_s, moved, self.timeline.rested(rows["client"], states, start_s, until_s))

    def _under_way(self, rows: Rows, way: int) -> Iterable[tuple[int, Job]]:
        for place, number in enumerate(rows["job"].tolist()):
            job = self._jobs.get(number)
            if job is not None and job.stage == way:
                yield place, job

    # What happens in time.

    def _at(self, t_s: float, rank: int, handler: _Handler, job: Job, step: int = -1) -> None:
        """Calls a handler at a time; not if the job is over or, unless it is -1, has left the step."""
        if t_s < math.inf:
            if len(self._agenda) >= self._most:
                self._agenda = [due for due in self._agenda if _holds(due)]
                heapify(self._agenda)
                self._most = _FEW + 2 * len(self._agenda)
            heappush(self._agenda, (t_s, rank, next(self._order), handler, job, step))

    def _next_s(self) -> float:
        agenda = self._agenda
        while agenda and not _holds(agenda[0]):
            heappop(agenda)
        down, up = self._pools
        return min(down.next_s, up.next_s, self._look_s, agenda[0][0] if agenda else math.inf)

    def _sleep(self) -> None:
        """Makes sure to be woken when the next thing happens."""
        next_s = self._next_s()
        if next_s != self._wake_s:
            self._wake_s = next_s
            self._wakes += 1
            if next_s < math.inf:
                wake = self._wakes
                self._clock.at(next_s, urgent=True).callbacks = [lambda _: self._wake(wake)]

    def _wake(self, wake: int) -> None:
        if wake != self._wakes:
            return
        self._wake_s = math.inf
        under_way, now_s = len(self._jobs), self._clock.now
        while self._next_s() <= now_s:
            self._happen(now_s)
        if len(self._jobs) < under_way:
            self._ended(under_way - len(self._jobs))
        self._sleep()

    def _happen(self, now_s: float) -> None:
        """The next thing, which is due."""
        if self._look_s <= now_s:
            self._work()
            return
        for pool in self._pools:
            if pool.next_s <= now_s:
                for flow in pool.finish():
                    job = flow.owner
                    job.alone = flow.alone_s is not None
                    self._complete(job, now_s)
                return
        t_s, _, _, handler, job, _ = heappop(self._agenda)
        handler(job, max(t_s, now_s))

    # A job's way.

    def _enter(self, job: Job, way: int, now_s: float) -> None:
        """A job's download or its uploads begin."""
        job.enter(way, now_s)
        self._send(job, now_s)

    def _send(self, job: Job, now_s: float) -> None:
        """A transfer begins with its handshakes."""
        trace, delay_s = self._traces.of(job.client, job.stage), job.delay_s
        job.left_bits = job.bits
        if trace is not None and job.bits:
            delay_s, job.alone = trace.at(now_s).delay_s, False
        self._hold(job, now_s + delay_s)

    def _hold(self, job: Job, until_s: float) -> None:
        """A transfer's handshakes last until a time."""
        job.holds_until_s = until_s
        self._at(until_s, _STATION, self._flow, job, job.step)

    def _flow(self, job: Job, now_s: float) -> None:
        """The first byte flows."""
        job.holds_until_s = None
        if job.bits:
            self._start(job, now_s)
        else:
            self._complete(job, now_s)

    def _start(self, job: Job, now_s: float) -> None:
        """Bytes flow, or flow at another rate."""
        cap_bps, alone_s = job.cap_bps, job.alone_until_s(job.completed + 1) if job.alone else None
        trace = self._traces.of(job.client, job.stage)
        if trace is not None:
            cap_bps, _, until_s = trace.at(now_s)
            self._at(until_s, _STATION, self._change, job, job.step)
        if cap_bps:
            job.flow = Flow(job, cap_bps, job.cell, alone_s)
            self._pools[job.stage].start(job.flow, job.left_bits, now_s)

    def _change(self, job: Job, now_s: float) -> None:
        """The rate of the client's link changes."""
        self._stop(job, now_s)
        if job.is_carried:
            self._complete(job, now_s)
        else:
            self._start(job, now_s)

    def _stop(self, job: Job, now_s: float) -> None:
        """No more bytes flow, and nothing follows."""
        job.step += 1
        if job.flow is not None:
            job.left_bits = self._pools[job.stage].stop(job.flow, now_s)
            job.flow = None

    def _complete(self, job: Job, now_s: float) -> None:
        """A transfer is complete."""
        job.flow = None
        job.completed += 1
        job.step += 1
        if job.completed < job.times:
            self._send(job, now_s)
        elif job.stage == DOWN:
            self._receive(job, now_s)
        else:
            self._arrive(job, now_s)

    def _receive(self, job: Job, now_s: float) -> None:
        rows = self._table.rows
        rows["received_s"][job.slot] = now_s
        if not job.alone:
            rows["receive_s"][job.slot] = job.busy_until(now_s)
        job.stage = WORK
        self._received.append(job)
        least_s = job.least_work_s * min(1.0, job.crashes_at)
        self._look_s = min(self._look_s, now_s + least_s * _EARLY)

    def _work(self) -> None:
        """Times the work of the jobs that were received."""
        jobs = [job for job in self._received if not job.over]
        self._received.clear()
        self._look_s = math.inf
        for finish_by in dict.fromkeys(job.finish_by for job in jobs):
            some = [job for job in jobs if job.finish_by == finish_by]
            slots = np.array([job.slot for job in some])
            rows, states = self._table.take(slots), self._table.states[slots]
            states = self.timeline.rested(rows["client"], states, rows["dispatched_s"], rows["received_s"])
            worked_s = work(rows, states, self.timeline, finish_by).t_s
            self._table.set(slots, rows)
            crash_s = crashes_s(rows, np.array([job.crashes_at for job in some]))
            for job, end, crash in zip(some, worked_s.tolist(), crash_s.tolist(), strict=True):
                self._at(end, _STATION, self._worked, job)
                self._at(crash, _ELSE, self._lose, job)

    def _worked(self, job: Job, now_s: float) -> None:
        self._enter(job, UP, now_s)

    def _look(self, job: Job, now_s: float) -> None:
        """A job's client may leave, or be back."""
        client, states = np.array([job.client]), self._table.states[job.slot : job.slot + 1]
        answer = self.timeline.presence(client, np.array([now_s]), states)
        there, until_s = bool(answer.available[0]), float(answer.until_s[0])
        if not there and (self.timeline.loses or math.isinf(until_s)):
            self._lose(job, now_s)
            return
        self._at(until_s, _ELSE, self._look, job)
        if job.stage == WORK or there != job.is_paused:
            return
        if not there:
            self._stop(job, now_s)
            job.pause(now_s)
            return
        job.resume(now_s)
        if job.left_delay_s is not None:
            self._hold(job, now_s + job.left_delay_s)
        else:
            self._start(job, now_s)

    def _arrive(self, job: Job, now_s: float) -> None:
        rows, states = self._table.rows, self._table.states[job.slot : job.slot + 1]
        busy_s = job.busy_until(now_s)
        if not job.alone:
            rows["transmit_s"][job.slot] = busy_s
        in_vain = job.given_up
        if self.timeline.checks_at_end:
            in_vain |= bool(self.timeline.absent(np.array([job.client]), np.array([now_s]), states)[0])
        if in_vain:
            # As of a job that is broken off then.
            rows["transmit_s"][job.slot] = min(busy_s, rows["transmit_s"][job.slot])
            self._leave(job, now_s, lost=True)
            return
        rows["arrived_s"][job.slot] = now_s
        self._tails.arrive(job.slot)
        self._leave(job, now_s, lost=False)

    def _lose(self, job: Job, now_s: float) -> None:
        """A job is lost on its own, under way."""
        if job.stage != WORK:
            rows, (seconds, size) = self._table.rows, _CHARGED[job.stage]
            rows[seconds][job.slot], rows[size][job.slot] = self._progress(job, now_s)
            self._stop(job, now_s)
        self._leave(job, now_s, lost=True)

    def _leave(self, job: Job, now_s: float, *, lost: bool) -> None:
        rows = self._table.rows
        rows["due_s"][job.slot], rows["lost"][job.slot] = now_s, lost
        job.over = True
        del self._jobs[job.number]
        self._leaves(job.client, lost=lost)

    def _progress(self, job: Job, now_s: float) -> tuple[float, int]:
        """For how long a job's client has been at its transfers, and the bytes that these have moved."""
        busy_s, flow = job.busy_until(now_s), job.flow
        if job.alone and (flow is None or flow.alone_s is not None):
            return busy_s, job.moved(busy_s, None)
        left = job.left_bits if flow is None else self._pools[job.stage].left(flow, now_s)
        return busy_s, job.moved(busy_s, left)
