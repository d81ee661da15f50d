"""When jobs pass their stations, for many jobs at once.

On links that clients have to themselves, everything about a job's times is known at its dispatch: its
transfers, its work at the client's changing speed, when its client leaves, and what the draws decide. Who
picks it up, and whether the server gives it up before, is not. Where links are shared or change, the network
(``edgefl.world.network``) asks for one stage after another.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from edgefl.core import draws
from edgefl.core.availability import Answer, BatteryTimetable
from edgefl.core.availability.always import Params as Always
from edgefl.core.draws import Floats
from edgefl.core.event import JOULES
from edgefl.core.fleet import Fleet
from edgefl.core.plan import Bools, Ints, Plan
from edgefl.core.samplers.fixed import Params as Fixed
from edgefl.core.speed import curve_of
from edgefl.world.presence import Presence
from edgefl.world.table import Rows

_HOUR_S = 3600.0


def jitters(fleet: Fleet, root: int, exchange: str, clients: Ints, nth: Ints) -> Floats | float:
    """What jobs' work takes as many times as long by chance; see ``Timeline.drawn`` for the arguments."""
    if isinstance(fleet.jitter, Fixed):
        return fleet.jitter.value
    stream = draws.key(root, "jitter", exchange)
    found: Floats = fleet.jitter.draw(draws.uniforms(stream, clients, nth))
    return found


class Progress(NamedTuple):
    """Some clients' progress in one stage, an array each.

    Attributes:
        t_s: when the stage ended, or was looked at; infinite if its client is away for ever.
        done_s: how much of it was done, in seconds at full speed.
        busy_s: for how long the client was at it.
        power_s: as many seconds at full power take as much energy above idle.
        states: those of ``Timeline.states`` then, (n, states_of_each).
    """

    t_s: Floats
    done_s: Floats
    busy_s: Floats
    power_s: Floats
    states: Floats


class DrawnFailures(NamedTuple):
    """The failures that are drawn for jobs, an array each; infinite for none.

    Attributes:
        lost_s: when a job is lost, whatever it does until then.
        crashes_at: the share of its work after which its device crashes.
    """

    lost_s: Floats
    crashes_at: Floats


class Timeline:
    """The times of jobs on a fleet.

    Attributes:
        losing: whether jobs can be lost on their own.
        drains: whether jobs drain batteries.
        states_of_each: how many numbers ``states`` has of each client.
        plain: whether a stage lasts as long as its amount: nobody pauses, and speeds are constant.
        pauses, loses: whether jobs pause, or are lost, when their clients leave.
        checks_at_end: whether jobs are lost whose clients are away when their uploads arrive.
    """

    def __init__(self, plan: Plan) -> None:
        fleet, root = plan.fleet, plan.scenario.seed
        self._root = root
        self._fleet: Fleet = fleet
        self._slowdown = plan.clients.slowdown
        self.timetable = fleet.availability.timetable(plan.clients, root)
        self._presence = Presence(self.timetable, len(plan.clients))
        self.drains = isinstance(self.timetable, BatteryTimetable)
        self._comes_and_goes = not isinstance(fleet.availability, Always)
        self.pauses = self._comes_and_goes and fleet.on_leave == "pause"
        self.loses = self._comes_and_goes and fleet.on_leave == "lose"
        self.checks_at_end = self._comes_and_goes and fleet.on_leave == "check-at-end"
        self._curve = curve_of(fleet.speed, plan.clients, root) if fleet.speed else None
        failures = fleet.failures
        self.losing = self._comes_and_goes or any(
            (failures.crash, failures.crash_per_hour, failures.corrupt, failures.timeout)
        )
        self.plain = not (self.pauses or self._curve)
        self._curves = len(fleet.speed)
        # A job's times are those of the battery at its dispatch, whatever is taken from it meanwhile.
        minds = self.pauses or self.loses or self.checks_at_end
        self._batteries = self.timetable if minds and isinstance(self.timetable, BatteryTimetable) else None
        self.states_of_each = self._curves + (2 if self._batteries else 0)

    def drawn(self, exchange: str, clients: Ints, nth: Ints, work_s: Floats) -> tuple[Floats, Ints]:
        """The work's seconds at full speed, and how often uploads are sent, by chance.

        Args:
            exchange: its name.
            clients: whose jobs.
            nth: the number of each among its client's jobs in the exchange.
            work_s: at the device's full speed, before slowdown and jitter.
        """
        jitter = jitters(self._fleet, self._root, exchange, clients, nth)
        # A slower clock draws the same power for longer.
        amount_s = work_s * (self._slowdown[clients] * jitter)
        corrupt = self._fleet.failures.corrupt
        if not corrupt:
            return amount_s, np.ones(len(clients), dtype=np.int64)
        (uniform,) = draws.uniforms(draws.key(self._root, "corrupt", exchange), clients, nth, count=1)
        return amount_s, 1 + np.floor(np.log(uniform) / np.log(corrupt)).astype(np.int64)

    def states(self, clients: Ints, now_s: float) -> Floats:
        """The states of clients' speed curves, as they are now, and of batteries, (n, states_of_each)."""
        states = np.empty((len(clients), self.states_of_each))
        if self._curve is not None:
            states[:, : self._curves] = self._curve.state(clients, np.full(len(clients), now_s))
        if self._batteries is not None:
            states[:, self._curves :] = self._batteries.batteries(clients)
        return states

    def commit(self, clients: Ints, t_s: Floats, states: Floats) -> None:
        """Remembers the states of speed curves at the end of jobs."""
        if self._curve is not None:
            self._curve.commit(clients, t_s, states[:, : self._curves])

    def available(self, clients: Ints, now_s: float) -> Ints:
        """Those of the clients that are available now."""
        if not self._comes_and_goes:
            return clients
        return clients[self._presence.at(clients, now_s)]

    def stays_s(self, clients: Ints, now_s: float) -> Floats:
        """Until when clients that are available now stay at least."""
        if not self._comes_and_goes:
            return np.full(len(clients), np.inf)
        return self._presence.until_s(clients, now_s)

    def back_s(self, clients: Ints, now_s: float) -> float:
        """When the first of those that are away may be back; infinite if none is away."""
        if not self._comes_and_goes:
            return math.inf
        away = clients[~self._presence.at(clients, now_s)]
        return float(self._presence.until_s(away, now_s).min(initial=math.inf))

    def presence(self, clients: Ints, t_s: Floats, states: Floats) -> Answer:
        """Whether clients that are at a job are there at times (n,), and until when that holds at least.

        Args:
            clients: whose, (n,).
            t_s: the times.
            states: as ``states`` gave them when the jobs were dispatched.
        """
        if self._batteries is not None:
            return self._batteries.at(clients, t_s, states[:, self._curves :])
        return self.timetable.at(clients, t_s)

    def rested(self, clients: Ints, states: Floats, from_s: Floats, to_s: Floats) -> Floats:
        """The states of clients that do not work from one time to another, both (n,)."""
        if self._curve is None:
            return states
        own = self._curve.after(clients, states[:, : self._curves], from_s, to_s, working=False)
        return np.concatenate([own, states[:, self._curves :]], axis=1)

    def spend(self, rows: Rows, now_s: float) -> None:
        """Takes what ended jobs used from their clients' batteries, when the server learns of the end."""
        if isinstance(self.timetable, BatteryTimetable):
            above_idle = (rows[name] for name in JOULES if not name.endswith("idle_j"))
            used_j = np.nan_to_num(sum(above_idle, np.zeros(len(rows))))
            # Jobs of one client may end together.
            clients, places = np.unique(rows["client"], return_inverse=True)
            of_each = np.zeros(len(clients))
            np.add.at(of_each, places, used_j)
            self.timetable.spend(clients, np.full(len(clients), now_s), of_each)
            self._presence.forget(clients)

    def stage(
        self,
        clients: Ints,
        start_s: Floats,
        amount_s: Floats,
        states: Floats,
        *,
        working: bool,
        until_s: Floats | None = None,
    ) -> Progress:
        """How a stage goes.

        Args:
            clients: whose, (n,).
            start_s: when each begins.
            amount_s: its length at full speed.
            states: as ``states`` gives them, at the start.
            working: whether it is work, to which speed curves apply.
            until_s: looked at no later than this; None for the stage's end.
        """
        if self.plain:
            end_s = start_s + amount_s
            if until_s is None:
                return Progress(end_s, amount_s, amount_s, amount_s, states)
            busy_s = np.clip(until_s - start_s, 0.0, amount_s)
            return Progress(np.minimum(end_s, until_s), busy_s, busy_s, busy_s, states)
        return self._walked(clients, start_s, amount_s, states, until_s, working=working)

    def _walked(
        self,
        clients: Ints,
        start_s: Floats,
        amount_s: Floats,
        states: Floats,
        until_s: Floats | None,
        *,
        working: bool,
    ) -> Progress:
        """As ``stage``, interval by interval in each of which nobody's availability or speed changes."""
        curve, curves = self._curve, self._curves
        t, left, states = start_s.copy(), amount_s.copy(), states.copy()
        busy, powered = np.zeros(len(clients)), np.zeros(len(clients))
        stop = np.full(len(clients), np.inf) if until_s is None else until_s
        at = np.flatnonzero((left > 0) & (t < stop))
        while len(at):
            now, who = t[at], clients[at]
            there, hold = np.ones(len(at), dtype=bool), stop[at]
            if self.pauses:
                there, changes = self.presence(who, now, states[at])
                hold = np.minimum(hold, changes)
            factor, power = np.ones(len(at)), np.ones(len(at))
            if working and curve is not None:
                factor, changes, power[:] = curve.at(who, now, states[at, :curves])
                hold = np.where(there, np.minimum(hold, changes), hold)
            need = left[at] / factor
            ends = there & (need <= hold - now)
            after = np.where(ends, now + need, hold)
            spent = np.where(ends, need, hold - now)
            if curve is not None:
                worked = curve.after(who, states[at, :curves], now, after, working=working)
                rested = curve.after(who, states[at, :curves], now, after, working=False)
                states[at, :curves] = np.where(there[:, None], worked, rested)
            left[at] = np.where(ends, 0.0, np.where(there, left[at] - spent * factor, left[at]))
            spent = np.where(there, spent, 0.0)
            busy[at] += spent
            powered[at] += spent * power
            t[at] = after
            at = at[(left[at] > 0) & (after < stop[at])]
        return Progress(t, amount_s - left, busy, powered, states)

    def absent(self, clients: Ints, t_s: Floats, states: Floats) -> Bools:
        """Whose uploads arrive in vain, if it is checked, since the client is away then, (n,).

        A client that leaves at the very moment is still there. For the arguments see ``presence``.
        """
        found = ~self.presence(clients, t_s, states).available
        away = np.flatnonzero(found)
        before_s = np.nextafter(t_s[away], -np.inf)
        found[away] = ~self.presence(clients[away], before_s, states[away]).available
        return found

    def losses(self, rows: Rows, exchange: str, retries_s: Floats) -> Floats:
        """When each job is lost on its own; infinite for one that is not.

        Args:
            rows: jobs with the times that they would have.
            exchange: its name.
            retries_s: when an upload that was corrupted too often is given up; infinite for the others.
        """
        drawn = self.drawn_failures(rows, exchange)
        lost = np.minimum(retries_s, drawn.lost_s)
        lost = np.minimum(lost, crashes_s(rows, drawn.crashes_at))
        if self._comes_and_goes:
            gone_s = self._gone(rows["client"], rows, np.minimum(lost, rows["arrived_s"]))
            lost = np.minimum(lost, gone_s)
        return np.where(lost < rows["arrived_s"], lost, np.inf)

    def drawn_failures(self, rows: Rows, exchange: str) -> DrawnFailures:
        """The failures that are drawn for jobs of an exchange, given by its name."""
        failures, clients, nth = self._fleet.failures, rows["client"], rows["nth"]
        lost_s, crashes_at = np.full(len(rows), np.inf), np.full(len(rows), np.inf)
        if failures.timeout is not None:
            lost_s = rows["dispatched_s"] + failures.timeout
        if failures.crash:
            stream = draws.key(self._root, "crash", exchange)
            whether, when = draws.uniforms(stream, clients, nth)
            crashes_at = np.where(whether < failures.crash, when, np.inf)
        if failures.crash_per_hour:
            stream = draws.key(self._root, "crash per hour", exchange)
            (uniform,) = draws.uniforms(stream, clients, nth, count=1)
            crash_s = rows["dispatched_s"] - np.log(uniform) * _HOUR_S / failures.crash_per_hour
            lost_s = np.minimum(lost_s, crash_s)
        return DrawnFailures(lost_s, crashes_at)

    def _gone(self, clients: Ints, rows: Rows, until_s: Floats) -> Floats:
        """When clients leave before a time, for as long as it matters; infinite if they do not."""
        gone, t = np.full(len(clients), np.inf), rows["there_s"].copy()
        matters = self.loses & (t < until_s)
        if self.pauses:
            # Nobody waits for a client that never comes back.
            matters = np.isinf(rows["arrived_s"]) & np.isfinite(t)
        at = np.flatnonzero(matters)
        while len(at):
            there, changes = self.timetable.at(clients[at], t[at])
            left = ~there & (np.isinf(changes) if self.pauses else True)
            gone[at[left]] = t[at[left]]
            t[at] = changes
            at = at[~left & (changes < until_s[at])]
        return gone


def crashes_s(rows: Rows, crashes_at: Floats) -> Floats:
    """When devices crash, while they compute if ever; infinite for those that do not, (n,).

    Args:
        rows: jobs with the times of their work.
        crashes_at: see ``DrawnFailures``.
    """
    # The work of a client that is away for ever has no end, or no beginning.
    does = np.isfinite(crashes_at) & np.isfinite(rows["received_s"])
    work_s = np.subtract(rows["worked_s"], rows["received_s"], out=np.zeros(len(rows)), where=does)
    crash_s = np.full(len(rows), np.inf)
    crash_s[does] = rows["received_s"][does] + crashes_at[does] * work_s[does]
    return crash_s
