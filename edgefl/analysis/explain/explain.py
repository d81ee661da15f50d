"""Why a round, or a whole run, took as long as it did: who and what its critical paths waited for.

What a part of a path was bound by is told in seconds that add up to the part's time:

- Of a transfer: "latency", "rate", "loss", "sharing" and "repeats"; see ``transfers``.
- Of work: "compute", "memory" and "launch" are its seconds at the device's full speed, by what bounds its
  kernels; "slowdown" is what the client's constant slowdown adds, "jitter" what chance adds, and "speed" what
  a changing speed adds, such as throttling. A client or a job that is faster than its device's full speed
  shortens the first three.
- "away" are the seconds of a stage in which the client was not busy with it: it was not available.
- "unavailable" is what the server waited for clients, "timer" for its policy's timer, "server" its own work.

A stage of which only the end is in the round counts in proportion.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from edgefl.analysis.explain.path import PHASES, Parts, critical_paths, rounds_of
from edgefl.analysis.explain.transfers import transfers
from edgefl.analysis.repricing import Columns
from edgefl.analysis.run import Run
from edgefl.core.arrays import Floats, Ints
from edgefl.core.availability.charging import Charging
from edgefl.core.cost import Cost
from edgefl.core.devices import Board, Bounds
from edgefl.core.documents import INLINE
from edgefl.core.errors import RunError, UserError
from edgefl.core.link_traces import Way
from edgefl.core.plan import Plan
from edgefl.core.price import Demand
from edgefl.core.samplers.fixed import Params as Fixed
from edgefl.planning.fleets import recorded_devices
from edgefl.planning.repricing import pricers_of, rows_of
from edgefl.store.plans import read_plan
from edgefl.store.reader import Reader
from edgefl.world.blind import sights
from edgefl.world.draws import jitters
from edgefl.world.needs import Feedback, Merge

TOP = 5
"""Of how many clients savings are reckoned."""
Progress = Callable[[str, int, int], None]
MEDIAN = ("link", "device", "work")
OF_CLIENTS = (*MEDIAN, "slowdown")
"""The changes that can be made to one client: the fleet's median link, device or work; no slowdown."""
CHANGES = (*OF_CLIENTS, "jitter")
"""Those that can be made to all clients; the last is no jitter, that which makes work quicker included."""
_SHOWN_EVERY = 64
# Sums of the same times in another order differ by as much.
_SAME = 1e-12
_LINK = ("down_delay_s", "up_delay_s", "down_bps", "up_bps")
Changes: TypeAlias = dict[int, list[dict[str, float]]]
"""Of each kind of client that is slower than the median, columns of its ``Prices`` in each exchange then."""
MOST_AGAIN = 2_000_000
"""Savings are reckoned where the clock makes at most so many jobs for them: a minute or two."""
CAUSES = (
    "rate", "latency", "loss", "sharing", "repeats",
    "compute", "memory", "launch", "slowdown", "jitter", "speed",
    "away", "unavailable", "timer", "server",
)  # fmt: skip
_AT = {name: place for place, name in enumerate(CAUSES)}
_STAGES = ("receive_s", "work_s", "transmit_s")
# Of a stage's time: a difference below it is rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Part:
    """A part of a critical path: ``PHASES``, and whose job it waited for, None where for none.

    Its seconds are told by what bound them, those above 0.
    """

    phase: str
    from_s: float
    to_s: float
    exchange: str | None
    client: int | None
    device: str | None
    link: str | None
    lost: bool
    by_cause: Mapping[str, float]


@dataclass(frozen=True)
class PathPhase:
    """What critical paths spent in one of the ``PHASES``, by what bound it, most first.

    Time in which a job's client was not available is a phase of its own, "away".
    """

    phase: str
    seconds: float
    by_cause: Mapping[str, float]


@dataclass(frozen=True)
class HeldByClient:
    """A client that held rounds up.

    Attributes:
        rounds: in how many rounds it was most of the critical path.
        seconds: of critical paths.
        phase, cause: the phase that most of that was, and what that was bound by.
        savings: as of ``Explanation``, if changes were made to this client alone; None for all but the first
            few, too.
    """

    client: int
    device: str
    link: str
    rounds: int
    seconds: float
    phase: str
    cause: str
    savings: Mapping[str, float] | None


@dataclass(frozen=True)
class HeldByDevice:
    """How much all clients of one device held rounds up together; see ``HeldByClient``."""

    device: str
    clients: int
    rounds: int
    seconds: float
    phase: str
    cause: str


@dataclass(frozen=True)
class PathRound:
    """A round and what held it up most.

    Attributes:
        round: from 0; -1 before the first, the number of rounds after the last.
        in_rounds: whether it is a round; False for exchanges at the start and at the end.
        from_s: when the round before ended.
        seconds: until its last merge.
        client, client_s: the client with most of its critical path, and how much that was.
        phase, cause: the phase of most of the path, and what that was bound by; None of a round that took no
            time.
    """

    round: int
    in_rounds: bool
    from_s: float
    seconds: float
    client: int | None
    client_s: float
    phase: str | None
    cause: str | None


@dataclass(frozen=True)
class RoundExplanation:
    """Why a round took as long as it did: its critical path, in order of time."""

    name: str
    run_dir: str
    of: PathRound = field(metadata={INLINE: PathRound})
    path: Sequence[Part]


@dataclass(frozen=True)
class Explanation:
    """Why a run's rounds took as long as they did, all together.

    Attributes:
        seconds: of all rounds: until the last merge.
        phases: what critical paths consist of, most first.
        clients: those that held rounds up, most first; the first five have ``savings``.
        devices: the same by device.
        savings: by how many virtual seconds the run would make as many merges sooner, by the change that is
            made to all clients, or to what they share (see ``Again``); below 0 where it would take longer.
            None where that is unknown.
        unsaved: why it is unknown: "size", the run is too long to run its clock so often, or "world", more
            than times would change; None where it is known.
        unknown_since: what in the run depends on times, so that other times make another run.
        rounds: all of them, in order.
    """

    name: str
    run_dir: str
    seconds: float
    phases: Sequence[PathPhase]
    clients: Sequence[HeldByClient]
    devices: Sequence[HeldByDevice]
    savings: Mapping[str, float] | None
    unsaved: str | None
    unknown_since: Sequence[str]
    rounds: Sequence[PathRound]


def explain(
    reader: Reader, round_: int | None = None, progress: Progress = lambda *_: None
) -> Explanation | RoundExplanation:
    """Why a run, or one of its rounds (from 0), took as long as it did; progress as in ``Again``.

    Raises:
        UserError: there is no such round, nothing was merged yet, or a device cannot be priced.
    """
    explainer = Explainer(reader, read_plan(reader), recorded_devices(reader))
    return explainer.run(progress) if round_ is None else explainer.round(round_)


class Explainer:
    """A run's critical paths, and what changes would save; causes are (parts, ``CAUSES``) in seconds."""

    def __init__(self, reader: Reader, plan: Plan, devices: Mapping[str, Board]) -> None:
        """Raises as ``explain`` does."""
        self._plan, self._meta, self._where = plan, reader.meta, reader.where
        self._found = Run(reader)
        self.rounds = rounds_of(self._found)
        if not len(self.rounds.number):
            raise UserError(f"{self._meta['name']}: nothing was merged yet", where=reader.where)
        self.parts = critical_paths(self._found)
        self._medians = Medians(plan, devices)
        self.causes = by_cause(self._found, plan, self._medians, self.parts)
        self._spent_s: Floats = self.causes.sum(axis=1)
        self._client: Ints = np.append(self._found.jobs.client, -1)[self.parts.job]

    def run(self, progress: Progress = lambda *_: None) -> Explanation:
        device = np.append(self._found.clients.device, -1)[self._client]
        sizes = np.bincount(self._found.clients.device, minlength=len(self._found.device_names)).tolist()
        names = self._found.device_names
        clients = list(self._held(self._client))
        saved, unsaved = self._saved([None, *(client for client, _ in clients[:TOP])], progress)
        return Explanation(
            name=self._meta["name"],
            run_dir=self._where,
            seconds=float(self.rounds.to_s[-1]),
            phases=_phases(self._table(slice(None))),
            clients=[
                HeldByClient(client, *(*self._places(client), *held), saved.get(client))
                for client, held in clients
            ],
            devices=[HeldByDevice(names[place], sizes[place], *held) for place, held in self._held(device)],
            savings=saved.get(None),
            unsaved=unsaved,
            unknown_since=list(sights(self._plan)),
            rounds=[self._one(place) for place in range(len(self.rounds.number))],
        )

    def round(self, number: int) -> RoundExplanation:
        """A ``UserError`` if there is none with this number."""
        numbers = self.rounds.number
        if number not in numbers:
            raise UserError(
                f"{self._meta['name']} has no round {number}",
                where="--round",
                hint=f"its rounds are {numbers.min()} to {numbers.max()}",
            )
        place = int(np.searchsorted(numbers, number))
        path = [self._part(row) for row in np.flatnonzero(self.parts.round == place).tolist()]
        return RoundExplanation(self._meta["name"], self._where, self._one(place), path)

    def _saved(
        self, whom: Sequence[int | None], progress: Progress
    ) -> tuple[dict[int | None, dict[str, float]], str | None]:
        """What changes to all clients (None), or to some, would save; or why that is unknown."""
        again = Again(self._plan, self._medians, self._found.merges.t_s, len(whom) - 1, progress)
        if again.runs * len(self._found.jobs) > MOST_AGAIN:
            return {}, "size"
        if not again.is_known():
            return {}, "world"
        return {client: again.saved_s(client) for client in whom}, None

    def _held(self, whose: Ints) -> Iterator[tuple[int, tuple[int, float, str, str]]]:
        """Who held rounds up, most first: in how many, for how long, in which phase and bound by what."""
        rows = np.flatnonzero(whose >= 0)
        who, at = np.unique(whose[rows], return_inverse=True)
        pairs, pair = np.unique(np.stack([self.parts.round[rows], at]), axis=1, return_inverse=True)
        in_round_s = np.bincount(pair.reshape(-1), weights=self._spent_s[rows])
        order = np.lexsort((in_round_s, pairs[0]))
        most = order[np.flatnonzero(np.diff(pairs[0][order], append=-1))]
        rounds = np.bincount(pairs[1][most], minlength=len(who))
        seconds = np.bincount(at, weights=self._spent_s[rows], minlength=len(who))
        own = np.split(rows[np.argsort(at, kind="stable")], np.cumsum(np.bincount(at))[:-1])
        for place in np.argsort(-seconds, kind="stable").tolist():
            most_of_it = _mostly(self._table(own[place]))
            yield int(who[place]), (int(rounds[place]), float(seconds[place]), *most_of_it)

    def _one(self, place: int) -> PathRound:
        rows = slice(*np.searchsorted(self.parts.round, [place, place + 1]).tolist())
        who, spent_s = self._client[rows], self._spent_s[rows]
        clients, at = np.unique(who[who >= 0], return_inverse=True)
        by_client = np.bincount(at, weights=spent_s[who >= 0])
        most = int(by_client.argmax()) if len(clients) else -1
        phase, cause = _mostly(self._table(rows)) if len(who) else (None, None)
        return PathRound(
            round=int(self.rounds.number[place]),
            in_rounds=bool(self._found.in_rounds[self._found.merges.exchange[self.rounds.first[place]]]),
            from_s=float(self.rounds.from_s[place]),
            seconds=float(self.rounds.to_s[place] - self.rounds.from_s[place]),
            client=int(clients[most]) if len(clients) else None,
            client_s=float(by_client[most]) if len(clients) else 0.0,
            phase=phase,
            cause=cause,
        )

    def _part(self, row: int) -> Part:
        job, client = int(self.parts.job[row]), int(self._client[row])
        device, link = (None, None) if client < 0 else self._places(client)
        return Part(
            phase=PHASES[self.parts.phase[row]],
            from_s=float(self.parts.from_s[row]),
            to_s=float(self.parts.to_s[row]),
            exchange=None if job < 0 else self._found.names[self._found.jobs.exchange[job]],
            client=None if job < 0 else client,
            device=device,
            link=link,
            lost=job >= 0 and bool(np.isnan(self._found.jobs.arrived_s[job])),
            by_cause=_most_first(self.causes[row].tolist()),
        )

    def _places(self, client: int) -> tuple[str, str]:
        """A client's device and link."""
        clients = self._plan.clients
        return clients.devices[clients.device[client]], clients.links[clients.link[client]]

    def _table(self, rows: Ints | slice) -> Floats:
        """The seconds of some parts by phase and cause, (phases, causes)."""
        found = np.zeros((len(PHASES), len(CAUSES)))
        np.add.at(found, self.parts.phase[rows], self.causes[rows])
        return found


def _phases(table: Floats) -> list[PathPhase]:
    """What seconds by phase and cause, (phases, causes), consist of, most first."""
    rows = [*table.tolist(), [0.0] * len(CAUSES)]
    for row in rows[:-1]:
        rows[-1][_AT["away"]] += row[_AT["away"]]
        row[_AT["away"]] = 0.0
    found = [
        PathPhase(phase, sum(row), _most_first(row))
        for phase, row in zip((*PHASES, "away"), rows, strict=True)
    ]
    return sorted((one for one in found if one.by_cause), key=lambda one: -one.seconds)


def _mostly(table: Floats) -> tuple[str, str]:
    """The phase that took longest, and what most of that was bound by."""
    first = _phases(table)[0]
    return first.phase, next(iter(first.by_cause))


def _most_first(seconds: Sequence[float]) -> dict[str, float]:
    """Those above 0, by cause."""
    pairs = ((name, one) for name, one in zip(CAUSES, seconds, strict=True) if one > 0)
    return dict(sorted(pairs, key=lambda pair: -pair[1]))


def by_cause(found: Run, plan: Plan, medians: "Medians", parts: Parts) -> Floats:
    """The seconds of each part by ``CAUSES``, (n, causes); an unknown number of a device is a UserError."""
    seconds, lasted_s = np.zeros((len(parts.job), len(CAUSES))), parts.to_s - parts.from_s
    for cause, waits in (("unavailable", "waiting for clients"), ("timer", "timer"), ("server", "server")):
        there = parts.phase == PHASES.index(waits)
        seconds[there, _AT[cause]] = lasted_s[there]
    jobs, at = np.unique(parts.job[parts.job >= 0], return_inverse=True)
    # Of whole stages, (jobs, causes).
    stages = np.zeros((3, len(jobs), len(CAUSES)))
    ways: tuple[tuple[int, Way], ...] = ((0, "down"), (2, "up"))
    for phase, way in ways:
        for cause, bound_s in transfers(found, plan, jobs, way)._asdict().items():
            stages[phase, :, _AT[cause]] = bound_s
    for cause, bound_s in _worked(found, plan, medians, jobs).items():
        stages[1, :, _AT[cause]] = bound_s
    of_part = np.flatnonzero(parts.job >= 0)
    for phase, (stage, name) in enumerate(zip(stages, _STAGES, strict=True)):
        mine = parts.phase[of_part] == phase
        rows, job = of_part[mine], at[mine]
        busy_s = found.jobs[name][jobs[job]] * parts.share[rows]
        away_s = lasted_s[rows] - busy_s
        away_s = np.where(away_s > _ROUNDING * parts.to_s[rows], away_s, 0.0)
        total = stage[job].sum(axis=1)
        scale = np.divide(lasted_s[rows] - away_s, total, out=np.zeros(len(rows)), where=total > 0)
        seconds[rows] = stage[job] * scale[:, None]
        seconds[rows, _AT["away"]] = away_s
    return seconds


def _worked(found: Run, plan: Plan, medians: "Medians", places: Ints) -> dict[str, Floats]:
    """The seconds of some jobs' work by what bound them, (n,) each."""
    jobs = found.jobs[places]
    kind, slowdown = found.clients.kind[jobs.client], found.clients.slowdown[jobs.client]
    busy_s, done = jobs.work_s, ~np.isnan(jobs.worked_s)
    # Whole work at full speed: the kinds' prices, by the steps that jobs took.
    work_s, of_all = (
        np.stack([getattr(one.demand, name) for one in plan.prices])[jobs.exchange, kind]
        for name in ("work_s", "steps")
    )
    planned_s = work_s * np.divide(jobs.steps, of_all, out=np.ones(len(work_s)), where=of_all > 0)
    # Nobody knows how far work came that was broken off: at its client's usual speed, it is assumed.
    full_s = np.where(done, planned_s, np.minimum(planned_s, busy_s / slowdown))
    usual_s = full_s * slowdown
    jittered_s = np.minimum(usual_s * _jitter(plan, jobs), busy_s) if plan.fleet.speed else busy_s
    jittered_s = np.where(done, jittered_s, busy_s)
    slow = np.maximum(slowdown, 1.0)
    chance = np.divide(jittered_s, usual_s, out=np.ones(len(busy_s)), where=usual_s > 0)
    late = np.where(chance > 1 + _ROUNDING, chance, 1.0)
    base_s, speed_s = jittered_s / (slow * late), busy_s - jittered_s
    # By the shares that arithmetic, memory and launches have at full speed.
    pairs, at = np.unique(np.stack([jobs.exchange, kind]), axis=1, return_inverse=True)
    shares = np.tile([1.0, 0.0, 0.0], (pairs.shape[1], 1))
    for row, pair in enumerate(pairs.T.tolist()):
        bounds = medians.bounds(*pair)
        if bounds is not None and bounds.seconds > 0:
            shares[row] = np.array(bounds) / bounds.seconds
    compute, memory, launch = shares[at.reshape(-1)].T
    return {
        "compute": base_s * compute,
        "memory": base_s * memory,
        "launch": base_s * launch,
        "slowdown": base_s * (slow - 1),
        "jitter": base_s * slow * (late - 1),
        "speed": np.where(speed_s > _ROUNDING * busy_s, speed_s, 0.0),
    }


def _jitter(plan: Plan, jobs: Columns) -> Floats:
    """What some jobs' work took as many times as long by chance: drawn again."""
    drawn = np.ones(len(jobs))
    for place, prices in enumerate(plan.prices):
        mine = jobs.exchange == place
        drawn[mine] = jitters(
            plan.fleet, plan.scenario.seed, prices.exchange, jobs.client[mine], jobs.nth[mine]
        )
    return drawn


class Again:
    """How much sooner a run would have made its merges with changes: the clock runs once more.

    Of a run that is blind to time (``edgefl.world.blind``), that is what a new run with the change takes.
    Where other times change who is asked or merged, the other run makes as many merges, may also take longer,
    and learns something else.

    Attributes:
        changes: ``CHANGES``, and those of what is shared: "server" is the server's link, and "cells" are all
            cells, twice as fast; "unshared" is neither limited.
        runs: how often the clock runs, for all clients and for some.
    """

    def __init__(
        self, plan: Plan, medians: "Medians", merged_s: Floats, clients: int, progress: Progress
    ) -> None:
        """Takes a run with its merges' times, (n,), and how many clients' savings are asked for."""
        self._plan, self._medians, self._merged_s, self._progress = plan, medians, merged_s, progress
        self._shared = _with_shared(plan)
        self.changes = (*CHANGES, *self._shared)
        # Once as it was, and once for each change.
        self.runs = 1 + len(self.changes) + len(OF_CLIENTS) * clients
        self._done = 0

    def is_known(self) -> bool:
        """Whether the world does again what the run did.

        It does where work was traced, no selector saw losses that are not there now, no work fits into a
        time, and no battery or energy has a say, which other prices would change too.
        """
        plan = self._plan
        timetable = plan.fleet.availability.timetable(plan.clients, plan.scenario.seed)
        sees_energy = plan.scenario.server.until.energy is not None or isinstance(timetable, Charging)
        traced = all(prices.traces for prices in plan.prices)
        could = traced and not sees_energy and plan.scenario.local.fit is None
        return could and self._run(plan, same=True) is not None

    def saved_s(self, client: int | None = None) -> dict[str, float]:
        """By how many seconds as many merges would be made sooner, by change to one client, or to all (None).

        A change is left out if there would not be as many merges. A device that throttles otherwise, or not
        at all, would do so after the change, which is not known; nor are the rates of another link among
        traces.
        """
        fleet, now_s = self._plan.fleet, float(self._merged_s[-1])
        unknown = {"device": bool(fleet.speed), "link": any(link.trace for link in fleet.links.values())}
        found = {}
        for change in self.changes if client is None else OF_CLIENTS:
            changed = None if unknown.get(change) else self._changed(change, client)
            t_s = self._run(changed) if changed else None
            if t_s is not None:
                found[change] = 0.0 if math.isclose(t_s, now_s, rel_tol=_SAME) else now_s - t_s
        return found

    def _changed(self, change: str, client: int | None) -> Plan:
        plan = self._plan
        if change in MEDIAN:
            return _repriced(plan, self._of_kinds[change], client)
        if change == "slowdown":
            who = slice(None) if client is None else client
            slowdown = plan.clients.slowdown.copy()
            slowdown[who] = np.minimum(slowdown[who], 1.0)
            return replace(plan, clients=replace(plan.clients, slowdown=slowdown))
        if change == "jitter":
            return replace(plan, fleet=plan.fleet.model_copy(update={"jitter": Fixed()}))
        return self._shared[change]

    @cached_property
    def _of_kinds(self) -> Mapping[str, Changes]:
        return {change: getattr(self._medians, change)() for change in MEDIAN}

    def _run(self, plan: Plan, *, same: bool = False) -> float | None:
        """When a plan's run makes as many merges; None if it does not, or not at the ``same`` times."""
        # Loads SimPy, which nothing else here needs.
        from edgefl.world.driver import simulate

        world, merged_s, merges = simulate(plan), self._merged_s.tolist(), 0
        total = len(merged_s) * self.runs
        try:
            need = next(world)
            while True:
                if isinstance(need, Merge):
                    if same and need.t_s != merged_s[merges]:
                        return None
                    merges += 1
                    if merges % _SHOWN_EVERY == 0:
                        self._progress("running the clock again", self._done + merges, total)
                    if merges == len(merged_s):
                        return need.t_s
                need = world.send(Feedback())
        except (StopIteration, RunError):
            return None
        finally:
            self._done += len(merged_s)
            world.close()


def _repriced(plan: Plan, changes: Changes, client: int | None) -> Plan:
    """A plan with other prices for all kinds that change, or for one client, as a kind of its own."""
    clients, kind = plan.clients, 0 if client is None else int(plan.clients.kind[client])
    kinds = changes if client is None else {-1: changes[kind]} if kind in changes else {}
    prices = []
    for place, one in enumerate(plan.prices):
        columns = {name: np.append(each, each[kind]) for name, each in one.demand._asdict().items()}
        for row, values in kinds.items():
            for name, value in values[place].items():
                columns[name][row] = value
        prices.append(replace(one, corners=None, demand=Demand(**columns)))
    if client is not None:
        own = clients.kind.copy()
        own[client] = len(prices[0].demand.work_s) - 1
        clients = replace(clients, kind=own)
    return replace(plan, clients=clients, prices=tuple(prices))


def _with_shared(plan: Plan) -> dict[str, Plan]:
    """The plan with each change of what clients share, if they do: at twice the rates, or without limits."""
    server, found = plan.scenario.server, {}
    limits = {"uplink": server.uplink, "downlink": server.downlink}
    rates = {way: rate for way, rate in limits.items() if rate is not None}

    def limited(update: Mapping[str, float | None]) -> Plan:
        scenario = plan.scenario.model_copy(update={"server": server.model_copy(update=update)})
        return replace(plan, scenario=scenario)

    if rates:
        found["server"] = limited({way: 2 * rate for way, rate in rates.items()})
    if plan.clients.cells:
        cells = {}
        for name, cell in plan.fleet.cells.items():
            ways = {"down": cell.down, "up": cell.up}.items()
            faster = {way: rate.model_copy(update={"value": 2 * (rate.value or 0.0)}) for way, rate in ways}
            cells[name] = cell.model_copy(update=faster)
        found["cells"] = replace(plan, fleet=plan.fleet.model_copy(update={"cells": cells}))
    if found:
        alone = replace(plan.clients, cell=np.full(len(plan.clients), -1), cells=())
        found["unshared"] = replace(limited(dict.fromkeys(rates)), clients=alone)
    return found


class Medians:
    """The median link, device and work of a run's fleet, and what bounds its clients' work.

    Each kind of client orders links by the time that they take for its own payloads, devices (with their
    number types) by that for its own work, and work by its time on its own device, each summed over the
    method's exchanges. The median is that of the client in the middle of all that were admitted; of an even
    number, of the quicker one of the two in the middle. Work is the steps that follow from a client's
    samples; only clients with the same model are compared in it.
    """

    def __init__(self, plan: Plan, devices: Mapping[str, Board]) -> None:
        """Takes a plan that has its traces, and its devices by name."""
        self._prices, self._links, clients = plan.prices, plan.fleet.links, plan.clients
        self._kinds = clients.one_of_each_kind()
        self._rows = list(rows_of(self._kinds))
        self._pricers = pricers_of(devices)
        count = np.bincount(clients.kind[clients.admitted], minlength=len(self._rows))
        # The kinds that have an admitted client, and how many.
        self._here: list[int] = np.flatnonzero(count).tolist()
        self._count = count[self._here]

    def bounds(self, place: int, kind: int) -> Bounds | None:
        """The time of a kind's work in the exchange at a place, by what bounds it; None without a trace.

        Raises:
            UserError: a number that pricing needs is unknown for its device.
        """
        if not self._prices[place].traces:
            return None
        device, _, dtype = self._rows[kind]
        return self._time(place, kind, kind, (device, dtype))

    def link(self) -> Changes:
        own_names = [self._rows[kind][1] for kind in self._here]
        names, own = np.unique(own_names, return_inverse=True)
        shape = len(names), len(self._here)
        delay_s, down_bps, up_bps = (
            np.broadcast_to([[getattr(self._links[name], key)] for name in names.tolist()], shape)
            for key in ("delay_s", "down_bps", "up_bps")
        )
        there = [
            demand._replace(
                down_delay_s=np.where(demand.down_bytes > 0, delay_s, 0.0),
                up_delay_s=np.where(demand.up_bytes > 0, delay_s, 0.0),
                down_bps=down_bps,
                up_bps=up_bps,
            )
            for demand in (prices.demand.taken(self._here) for prices in self._prices)
        ]
        seconds = np.array([one.down_s + one.up_s for one in there]).sum(axis=0)
        return {
            self._here[row]: [{name: float(getattr(each, name)[to, row]) for name in _LINK} for each in there]
            for row, to in _slower(seconds.T, own, np.bincount(own, self._count, len(names))).items()
        }

    def device(self) -> Changes:
        rows = [(self._rows[kind][0], self._rows[kind][2]) for kind in self._here]
        boards = sorted(set(rows))
        seconds = np.array([self._seconds([(kind, board) for board in boards], kind) for kind in self._here])
        own = np.array([boards.index(row) for row in rows])
        chosen = _slower(seconds.sum(axis=2), own, np.bincount(own, self._count, len(boards)))
        work_s = {self._here[row]: seconds[row, board].tolist() for row, board in chosen.items()}
        return {kind: [{"work_s": one} for one in each] for kind, each in work_s.items()}

    def work(self) -> Changes:
        models = self._kinds.model[self._here]
        groups: dict[tuple[int, str, str], list[int]] = {}
        for row, (kind, model) in enumerate(zip(self._here, models.tolist(), strict=True)):
            device, _, dtype = self._rows[kind]
            groups.setdefault((model, device, dtype), []).append(row)
        found: Changes = {}
        for (model, *board), rows in groups.items():
            alike = np.flatnonzero(models == model)
            choices = [(self._here[one], (board[0], board[1])) for one in alike]
            seconds = self._seconds(choices, self._here[rows[0]])
            every = np.broadcast_to(seconds.sum(axis=1), (len(rows), len(alike)))
            own = np.searchsorted(alike, rows)
            for row, one in _slower(every, own, self._count[alike]).items():
                found[self._here[rows[row]]] = [{"work_s": each} for each in seconds[one].tolist()]
        return found

    def _seconds(self, choices: Sequence[tuple[int, tuple[str, str]]], kind: int) -> Floats:
        """How long a kind's work takes with the steps of another, on a device: (choices, exchanges).

        NaN where nobody can price that.
        """
        found = np.full((len(choices), len(self._prices)), math.nan)
        for row, (taken, board) in enumerate(choices):
            for place in range(len(self._prices)):
                with suppress(UserError):
                    found[row, place] = self._time(place, kind, taken, board).seconds
        return found

    def _time(self, place: int, kind: int, taken: int, board: tuple[str, str]) -> Bounds:
        prices = self._prices[place]
        work = prices.traces[int(self._kinds.model[kind])].work(prices.taken[taken])
        return self._pricers(*board).time(Cost(steps=work))


def _slower(seconds: Floats, own: np.ndarray, clients: np.ndarray) -> dict[int, int]:
    """The median choice of those rows whose own takes longer than it.

    Args:
        seconds: what each row's client would take with each choice, (rows, choices); NaN where unknown.
        own: each row's choice now, (rows,).
        clients: how many clients there are of each choice, (choices,).
    """
    half = (int(clients.sum()) + 1) // 2
    found = {}
    for row, each in enumerate(seconds):
        order = np.argsort(each, kind="stable")
        middle = int(order[np.searchsorted(np.cumsum(clients[order]), half)])
        if each[own[row]] > each[middle] * (1 + _SAME):
            found[row] = middle
    return found
