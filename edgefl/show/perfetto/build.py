"""Writes a run's timeline to a file that Perfetto opens: https://ui.perfetto.dev."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from edgefl.analysis.run import Run
from edgefl.core.errors import UserError
from edgefl.core.event import joules
from edgefl.core.files import replacing
from edgefl.core.plan import Plan
from edgefl.planning.recorded import Recorded, recorded
from edgefl.show.perfetto.away import MOST_INTERVALS, Away, TooManyError, away_of
from edgefl.show.perfetto.choice import Choice, clients_of, spans, window_of
from edgefl.show.perfetto.clients import COLUMNS, TIMES, Lane, write_jobs
from edgefl.show.perfetto.counters import counters, nanoseconds
from edgefl.show.perfetto.owners import Owners
from edgefl.show.perfetto.packets import Packets
from edgefl.show.perfetto.server import Server
from edgefl.show.texts import STANDS
from edgefl.store import Reader

Progress = Callable[[str, int, int], None]
_SHOWN_EVERY = 256


@dataclass(frozen=True)
class Written:
    """A timeline that was written.

    Attributes:
        file: its path.
        bytes: its size.
        events: how many it has.
        clients: how many have a track.
        jobs: how many are shown.
        rounds: how many are shown, with the exchanges before and after them.
    """

    file: str
    bytes: int
    events: int
    clients: int
    jobs: int
    rounds: int


def write(
    reader: Reader,
    path: Path,
    choice: Choice = Choice(),  # noqa: B008 - it is frozen
    *,
    plan: Plan | None = None,
    note: Callable[[str], None],
    progress: Progress = lambda *_: None,
) -> Written:
    """Writes a run's timeline.

    Jobs that are not over are not in a run's directory, and not shown.

    Args:
        reader: the run.
        path: the file.
        choice: what is shown.
        plan: the run's, if it is in memory, where nothing says what bounds work; None to read it back.
        note: called with a line for what is left out.
        progress: called with what is written, how much is done, and how much there is.

    Raises:
        UserError: the run is damaged, or has no such clients or rounds.
        RunError: the file cannot be written; an existing file is unchanged.
    """
    with replacing(path) as temporary, temporary.open("wb") as stream:
        made = _Trace(reader, choice, plan, note, progress, stream).write()
    return Written(file=str(path), bytes=path.stat().st_size, **made)


class _Trace:
    """One run's trace in the making."""

    def __init__(
        self,
        reader: Reader,
        choice: Choice,
        plan: Plan | None,
        note: Callable[[str], None],
        progress: Progress,
        stream: BinaryIO,
    ) -> None:
        self._run = Run(reader)
        self._reader, self._note, self._progress, self._stream = reader, note, progress, stream
        self._exchanges = self._run.names
        self._spans = spans(self._run)
        self._window = window_of(choice, self._spans)
        self._clients = clients_of(self._run, choice, self._window, note)
        self._known = self._read_back() if plan is None else None
        self._plan = self._known.plan if self._known else plan

    def write(self) -> dict[str, int]:
        """Writes it; the counts of ``Written``."""
        progress, reader = self._progress, self._reader
        progress("reading jobs", 0, 1)
        if reader.status in STANDS:
            self._note(f"the run {STANDS[reader.status]}: jobs that were under way are not shown")
        jobs = self._jobs()
        away = self._away(float(np.max(jobs["until_s"], initial=0.0)))
        for name in TIMES:
            missing = np.isnan(jobs[name])
            jobs[name] = np.where(missing, -1, nanoseconds(np.where(missing, 0.0, jobs[name])))
        packets = Packets(self._stream, reader.meta["name"])
        server = Server(packets, reader, self._spans, self._window)
        server.before(jobs, self._exchanges)
        self._counters(packets)
        self._write_clients(packets, jobs, away, server.merged)
        server.after(jobs)
        packets.finish()
        return {
            "events": packets.count,
            "clients": len(self._clients),
            "jobs": len(jobs["job"]),
            "rounds": server.rounds,
        }

    def _jobs(self) -> dict[str, Any]:
        """The jobs that are shown, by client, as columns."""
        run = self._run
        shown = np.flatnonzero(np.isin(run.jobs.client, self._clients) & self._window.jobs(run))
        shown = shown[np.argsort(run.jobs.client[shown], kind="stable")]
        more = {"until_s": run.until_s, "energy_j": joules(run.jobs)}
        return {name: (more[name] if name in more else run.jobs[name])[shown] for name in COLUMNS}

    def _read_back(self) -> Recorded | None:
        try:
            return recorded(self._reader)
        except UserError as error:
            self._note(f"when clients were away and what bounds their work is not shown: {error.what}")
            return None

    def _away(self, last_s: float) -> Away | None:
        if self._plan is None:
            return None
        ends = [last_s, *(span.to_s for span in self._spans), self._reader.meta.get("virtual_s", 0.0)]
        from_s, to_s = max(self._window.from_s, 0.0), min(self._window.to_s, max(ends))
        try:
            return away_of(self._plan, self._reader, self._clients, from_s, to_s)
        except TooManyError:
            self._note(
                f"when clients were away is not shown: there are more than {MOST_INTERVALS:,} intervals; "
                "choose fewer --clients or --rounds"
            )
            return None

    def _counters(self, packets: Packets) -> None:
        for counter in counters(self._run, self._window):
            track = packets.track(counter.name, unit=counter.unit, about=counter.about)
            for t_ns, value in zip(counter.t_ns.tolist(), counter.value.tolist(), strict=True):
                packets.counter(track, t_ns, value)

    def _write_clients(
        self, packets: Packets, jobs: Mapping[str, Any], away: Away | None, merged: set[int]
    ) -> None:
        owners = Owners(self._reader, self._known)
        first = np.searchsorted(jobs["client"], self._clients, side="left").tolist()
        last = np.searchsorted(jobs["client"], self._clients, side="right").tolist()
        for place, client in enumerate(self._clients.tolist()):
            if place % _SHOWN_EVERY == 0:
                self._progress("writing clients", place, len(self._clients))
            owner = owners.of(client)
            name = f"client {client} ({owner.facts['device']})"
            track = packets.track(name, about=owners.about(client))
            lane = Lane(packets, track, _of(away, client))
            write_jobs(lane, _rows(jobs, first[place], last[place]), owner, self._exchanges, merged)
            lane.until(_FOR_EVER_NS)


_FOR_EVER_NS = 2**62


def _of(away: Away | None, client: int) -> list[tuple[int, int]]:
    """When a client was away, in nanoseconds."""
    if away is None:
        return []
    mine = slice(*np.searchsorted(away.client, [client, client + 1]).tolist())
    columns = (nanoseconds(column[mine]).tolist() for column in (away.from_s, away.to_s))
    return list(zip(*columns, strict=True))


def _rows(columns: Mapping[str, Any], first: int, last: int) -> Iterator[dict[str, Any]]:
    """Some rows of columns."""
    values = [column[first:last].tolist() for column in columns.values()]
    for row in zip(*values, strict=True):
        yield dict(zip(columns, row, strict=True))
