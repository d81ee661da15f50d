"""The server's tracks: rounds, dispatches, merges and evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edgefl.analysis.run import Ints
from edgefl.show.perfetto.choice import Span, Window
from edgefl.show.perfetto.counters import NS
from edgefl.show.perfetto.packets import Packets
from edgefl.store import Reader

Columns = Mapping[str, Any]


def flow_of(job: int) -> int:
    """The number of a job's flow; 0 is none."""
    return job + 1


class Server:
    """Writes the server's tracks.

    Attributes:
        merged: the versions whose merges are shown.
        rounds: how many rounds are, with the exchanges before and after them.
    """

    def __init__(self, packets: Packets, reader: Reader, found: Sequence[Span], window: Window) -> None:
        """Makes the tracks.

        Args:
            packets: the trace.
            reader: the run.
            found: its rounds.
            window: what is shown.
        """
        self._packets = packets
        self._reader = reader
        self._spans = [span for span in found if span.to_s > window.from_s and span.from_s < window.to_s]
        self._window = window
        names = ("rounds", "dispatches", "merges", "evaluations")
        self._rounds, self._dispatches, self._merges, self._evaluations = (
            packets.track(f"server: {name}") for name in names
        )
        rows = reader.rows("merges", "version")
        self._merge_rows = [row for row in rows if window.holds(row["t_s"])]
        self.merged = {row["version"] for row in self._merge_rows}
        self.rounds = len(self._spans)

    def before(self, jobs: Columns, exchanges: Sequence[str]) -> None:
        """Writes rounds, and the dispatches of some jobs, which their flows begin at."""
        for span in self._spans:
            before = "start" if span.round < 0 else "end"
            name = f"round {span.round}" if span.in_rounds else before
            self._packets.begin(self._rounds, _ns(span.from_s), name, ("round",), {"round": span.round})
            self._packets.end(self._rounds, _ns(span.to_s))
        turns, first, count = np.unique(jobs["dispatched_turn"], return_index=True, return_counts=True)
        flows = _grouped(jobs["dispatched_turn"], jobs["job"])
        for turn, row, jobs_shown in zip(turns.tolist(), first.tolist(), count.tolist(), strict=True):
            facts = {name: jobs[name][row].item() for name in ("round", "version")}
            self._packets.instant(
                self._dispatches,
                jobs["dispatched_s"][row].item(),
                "dispatch",
                {"exchange": exchanges[jobs["exchange"][row]], **facts, "jobs": jobs_shown},
                through=flows[turn],
            )

    def after(self, jobs: Columns) -> None:
        """Writes merges, which the flows of jobs end at, and evaluations."""
        flows = _grouped(jobs["into_version"], jobs["job"])
        for row in self._merge_rows:
            names = ("version", "round", "exchange", "jobs", "slowest_client", "loss")
            self._packets.instant(
                self._merges,
                _ns(row["t_s"]),
                "merge",
                {name: row[name] for name in names},
                into=flows.get(row["version"], ()),
            )
        for row in self._reader.query(
            "SELECT version, round, t_s FROM server_events WHERE kind = 'evaluated' "
            "UNION SELECT version, round, t_s FROM evaluations ORDER BY version"
        ):
            if self._window.holds(row["t_s"]):
                facts = {"version": row["version"], "round": row["round"], **self._scores(row["version"])}
                self._packets.instant(self._evaluations, _ns(row["t_s"]), "evaluation", facts)

    def _scores(self, version: int) -> dict[str, float]:
        rows = self._reader.query(
            "SELECT model, accuracy, loss FROM evaluations WHERE version = ? ORDER BY model", version
        )
        return {f"{row['model']} {name}": row[name] for row in rows for name in ("accuracy", "loss")}


def _ns(t_s: float) -> int:
    return round(t_s * NS)


def _grouped(keys: Ints, jobs: Ints) -> dict[int, list[int]]:
    """The flows of jobs by key."""
    order = np.argsort(keys, kind="stable")
    found, starts = np.unique(keys[order], return_index=True)
    pieces = np.split(jobs[order], starts[1:])
    return {
        key: list(map(flow_of, piece.tolist())) for key, piece in zip(found.tolist(), pieces, strict=False)
    }
