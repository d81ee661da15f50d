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

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from edgefl.analysis.explain.again import Again, Progress
from edgefl.analysis.explain.path import PHASES, Parts, critical_paths, rounds_of
from edgefl.analysis.explain.transfers import transfers
from edgefl.analysis.run import Run
from edgefl.core.arrays import Floats, Ints
from edgefl.core.documents import INLINE
from edgefl.core.errors import UserError
from edgefl.core.link_traces import Way
from edgefl.planning.medians import Medians
from edgefl.planning.recorded import Recorded, recorded
from edgefl.store.reader import Reader
from edgefl.world.blind import sights
from edgefl.world.draws import jitters

TOP = 5
"""Of how many clients savings are reckoned."""
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
            made to all clients, or to what they share (see ``again``); below 0 where it would take longer.
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
    """Why a run, or one of its rounds (from 0), took as long as it did; progress is told as in ``again``.

    Raises:
        UserError: there is no such round, nothing was merged yet, or a device cannot be priced.
    """
    explainer = Explainer(reader, recorded(reader))
    return explainer.run(progress) if round_ is None else explainer.round(round_)


class Explainer:
    """A run's critical paths, and what changes would save; causes are (parts, ``CAUSES``) in seconds."""

    def __init__(self, reader: Reader, planned: Recorded) -> None:
        """Raises as ``explain`` does."""
        self._plan, self._meta, self._where = planned.plan, reader.meta, reader.where
        self._found = Run(reader)
        self.rounds = rounds_of(self._found)
        if not len(self.rounds.number):
            raise UserError(f"{self._meta['name']}: nothing was merged yet", where=reader.where)
        self.parts = critical_paths(self._found)
        self._medians = Medians(planned)
        self.causes = by_cause(self._found, planned, self._medians, self.parts)
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


def by_cause(found: Run, planned: Recorded, medians: Medians, parts: Parts) -> Floats:
    """The seconds of each part by ``CAUSES``, (n, causes); an unknown number of a device is a UserError."""
    seconds, lasted_s = np.zeros((len(parts.job), len(CAUSES))), parts.to_s - parts.from_s
    for cause, waits in (("unavailable", "waiting for clients"), ("timer", "timer"), ("server", "server")):
        there = parts.phase == PHASES.index(waits)
        seconds[there, _AT[cause]] = lasted_s[there]
    jobs, at = np.unique(parts.job[parts.job >= 0], return_inverse=True)
    weights = _Weights(found, planned, medians, jobs)
    stages = weights.moved("down"), weights.worked(), weights.moved("up")
    of_part = np.flatnonzero(parts.job >= 0)
    for phase, (stage, name) in enumerate(zip(stages, _STAGES, strict=True)):
        mine = parts.phase[of_part] == phase
        rows, job = of_part[mine], at[mine]
        busy_s = getattr(found.jobs, name)[jobs[job]] * parts.share[rows]
        away_s = lasted_s[rows] - busy_s
        away_s = np.where(away_s > _ROUNDING * parts.to_s[rows], away_s, 0.0)
        total = stage[job].sum(axis=1)
        scale = np.divide(lasted_s[rows] - away_s, total, out=np.zeros(len(rows)), where=total > 0)
        seconds[rows] = stage[job] * scale[:, None]
        seconds[rows, _AT["away"]] = away_s
    return seconds


class _Weights:
    """The causes of some jobs' stages, (n, causes), in seconds of the whole stage."""

    def __init__(self, found: Run, planned: Recorded, medians: Medians, jobs: Ints) -> None:
        self._found, self._jobs, self._planned, self._medians = found, jobs, planned, medians
        self._plan = planned.plan
        self._client, self._place = found.jobs.client[jobs], found.jobs.exchange[jobs]
        self._kind = found.clients.kind[self._client]

    def moved(self, way: Way) -> Floats:
        weights = np.zeros((len(self._jobs), len(CAUSES)))
        for cause, seconds in transfers(self._found, self._planned, self._jobs, way)._asdict().items():
            weights[:, _AT[cause]] = seconds
        return weights

    def worked(self) -> Floats:
        busy_s, slowdown = self._of("work_s"), self._found.clients.slowdown[self._client]
        done, planned_s = ~np.isnan(self._of("worked_s")), self._planned_s()
        # Nobody knows how far work came that was broken off: at its client's usual speed, it is assumed.
        full_s = np.where(done, planned_s, np.minimum(planned_s, busy_s / slowdown))
        usual_s = full_s * slowdown
        jittered_s = np.minimum(usual_s * self._jitter(), busy_s) if self._plan.fleet.speed else busy_s
        jittered_s = np.where(done, jittered_s, busy_s)
        slow = np.maximum(slowdown, 1.0)
        chance = np.divide(jittered_s, usual_s, out=np.ones(len(busy_s)), where=usual_s > 0)
        late = np.where(chance > 1 + _ROUNDING, chance, 1.0)
        base_s = jittered_s / (slow * late)
        weights = np.zeros((len(busy_s), len(CAUSES)))
        weights[:, _AT["compute"] : _AT["launch"] + 1] = base_s[:, None] * self._bound_by()
        weights[:, _AT["slowdown"]] = base_s * (slow - 1)
        weights[:, _AT["jitter"]] = base_s * slow * (late - 1)
        speed_s = busy_s - jittered_s
        weights[:, _AT["speed"]] = np.where(speed_s > _ROUNDING * busy_s, speed_s, 0.0)
        return weights

    def _of(self, name: str) -> Floats:
        column: Floats = getattr(self._found.jobs, name)[self._jobs]
        return column

    def _planned_s(self) -> Floats:
        """The seconds of whole work at full speed: the kinds' prices, by the steps that jobs took."""
        work_s, of_all = (
            np.stack([getattr(one, name) for one in self._plan.prices])[self._place, self._kind]
            for name in ("work_s", "steps")
        )
        found: Floats = work_s * np.divide(
            self._found.jobs.steps[self._jobs], of_all, out=np.ones(len(work_s)), where=of_all > 0
        )
        return found

    def _bound_by(self) -> Floats:
        """The shares of work at full speed that are bound by arithmetic, memory and launches, (n, 3)."""
        pairs, at = np.unique(np.stack([self._place, self._kind]), axis=1, return_inverse=True)
        shares = np.zeros((pairs.shape[1], 3))
        shares[:, 0] = 1.0
        for row, (place, kind) in enumerate(pairs.T.tolist()):
            bounds = self._medians.bounds(place, kind)
            if bounds is not None and bounds.seconds > 0:
                shares[row] = np.array(bounds) / bounds.seconds
        return shares[at.reshape(-1)]

    def _jitter(self) -> Floats:
        """What work took as many times as long by chance: drawn again."""
        plan, all_jobs, found = self._plan, self._found.jobs, np.ones(len(self._jobs))
        nth = np.zeros(len(all_jobs), dtype=np.int64)
        order = np.lexsort((all_jobs.client, all_jobs.exchange))
        same = np.stack([all_jobs.client[order], all_jobs.exchange[order]])
        begins = np.flatnonzero((np.diff(same, axis=1, prepend=-1) != 0).any(axis=0))
        nth[order] = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
        for place, prices in enumerate(plan.prices):
            mine = np.flatnonzero(self._place == place)
            drawn = self._client[mine], nth[self._jobs[mine]]
            found[mine] = jitters(plan.fleet, plan.scenario.seed, prices.exchange, *drawn)
        return found
