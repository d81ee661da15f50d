"""Explains a round, or a whole run: who and what made it take as long as it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from edgefl.analysis.explain.again import Again, Progress
from edgefl.analysis.explain.causes import CAUSES, by_cause
from edgefl.analysis.explain.path import PHASES, critical_paths, rounds_of
from edgefl.analysis.explain.records import (
    Explanation,
    Held,
    HeldByClient,
    HeldByDevice,
    Part,
    Phase,
    Round,
    RoundExplanation,
)
from edgefl.analysis.run import Floats, Ints, Run
from edgefl.core.errors import UserError
from edgefl.planning.medians import Medians
from edgefl.planning.recorded import Recorded, recorded
from edgefl.store import Reader
from edgefl.world.blind import sights

TOP = 5
"""Of how many clients savings are reckoned."""
MOST_AGAIN = 2_000_000
"""Savings are reckoned where the clock makes at most so many jobs for them: a minute or two."""


def explain(
    reader: Reader, round_: int | None = None, progress: Progress = lambda *_: None
) -> Explanation | RoundExplanation:
    """Why a run, or one of its rounds, took as long as it did.

    Args:
        reader: the run.
        round_: the round, from 0; None for all together.
        progress: called where the clock runs again, see ``again``.

    Raises:
        UserError: there is no such round, nothing was merged yet, or a device cannot be priced.
    """
    explainer = Explainer(reader, recorded(reader))
    return explainer.run(progress) if round_ is None else explainer.round(round_)


class Explainer:
    """A run's critical paths, and what changes would save.

    Attributes:
        rounds: its rounds.
        parts: their critical paths.
        causes: the parts' seconds by ``CAUSES``, (n, causes).
    """

    def __init__(self, reader: Reader, planned: Recorded) -> None:
        """Takes a run and what it was planned of.

        Raises:
            UserError: nothing was merged yet, or a device cannot be priced.
        """
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
        """Why the whole run took as long as it did; see ``explain``."""
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
                HeldByClient(client, *self._places(client), held, saved.get(client))
                for client, held in clients
            ],
            devices=[HeldByDevice(names[place], sizes[place], held) for place, held in self._held(device)],
            savings=saved.get(None),
            unsaved=unsaved,
            unknown_since=list(sights(self._plan)),
            rounds=[self._one(place) for place in range(len(self.rounds.number))],
        )

    def round(self, number: int) -> RoundExplanation:
        """Why a round took as long as it did.

        Raises:
            UserError: there is none with this number.
        """
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

    def _held(self, whose: Ints) -> Iterator[tuple[int, Held]]:
        """Who held rounds up, and how much; most first."""
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
            phase, cause = _mostly(self._table(own[place]))
            yield int(who[place]), Held(int(rounds[place]), float(seconds[place]), phase, cause)

    def _one(self, place: int) -> Round:
        """A round and what held it up most."""
        rows = slice(*np.searchsorted(self.parts.round, [place, place + 1]).tolist())
        who, spent_s = self._client[rows], self._spent_s[rows]
        clients, at = np.unique(who[who >= 0], return_inverse=True)
        by_client = np.bincount(at, weights=spent_s[who >= 0])
        most = int(by_client.argmax()) if len(clients) else -1
        phase, cause = _mostly(self._table(rows)) if len(who) else (None, None)
        return Round(
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


_AWAY = CAUSES.index("away")


def _phases(table: Floats) -> list[Phase]:
    """What seconds by phase and cause, (phases, causes), consist of, most first."""
    rows = [*table.tolist(), [0.0] * len(CAUSES)]
    for row in rows[:-1]:
        rows[-1][_AWAY] += row[_AWAY]
        row[_AWAY] = 0.0
    found = [
        Phase(phase, sum(row), _most_first(row)) for phase, row in zip((*PHASES, "away"), rows, strict=True)
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
