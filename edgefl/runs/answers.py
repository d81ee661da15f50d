"""What a run answered its world, read back from its directory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np

from edgefl.store import Reader
from edgefl.world.needs import Evaluate, Feedback, Merge, Need

_AT_ONCE = 500


class Answers:
    """The feedback of a run, for its world to go the same way without training.

    Attributes:
        reader: the run.
        last: by client, the job that wrote its state, as far as needs were answered.
    """

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.last: dict[int, int] = {}
        rows = reader.query("SELECT exchange FROM exchanges WHERE stateful")
        self._stateful = {row["exchange"] for row in rows}

    def to(self, need: Need) -> Feedback:
        """What the run answered to the need that is its own in the same place."""
        rows = need.late_rows
        if isinstance(need, Merge):
            rows = np.concatenate([need.rows, rows]) if len(rows) else need.rows
        self._note_states(need, rows)
        scalars = _Scalars(self.reader, np.sort(rows["job"]).tolist())
        return Feedback(scalars, self._scores.get(need.version, {}) if isinstance(need, Evaluate) else {})

    def _note_states(self, need: Need, rows: np.ndarray) -> None:
        stateful = [prices.exchange in self._stateful for prices in need.plan.prices]
        if any(stateful):
            wrote = rows[np.array(stateful)[rows["exchange"]]]
            wrote = wrote[np.argsort(wrote["job"])]
            self.last.update(zip(wrote["client"].tolist(), wrote["job"].tolist(), strict=True))

    @cached_property
    def _scores(self) -> dict[int, dict[str, float]]:
        """By version, its accuracies by model."""
        found: dict[int, dict[str, float]] = {}
        for row in self.reader.query("SELECT version, model, accuracy FROM evaluations ORDER BY rowid"):
            found.setdefault(row["version"], {})[row["model"]] = row["accuracy"]
        return found


class _Scalars(Mapping[int, Mapping[str, float]]):
    """The scalars of jobs, read when somebody asks for them: most selectors never do."""

    def __init__(self, reader: Reader, jobs: list[int]) -> None:
        self._reader = reader
        self._jobs = jobs

    @cached_property
    def _found(self) -> dict[int, Mapping[str, float]]:
        found: dict[int, Mapping[str, float]] = {}
        for start in range(0, len(self._jobs), _AT_ONCE):
            some = self._jobs[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            sql = f"SELECT job, scalars FROM jobs WHERE scalars IS NOT NULL AND job IN ({marks}) ORDER BY job"  # noqa: S608 - numbers
            found |= {row["job"]: json.loads(row["scalars"]) for row in self._reader.query(sql, *some)}
        return found

    def __getitem__(self, job: int) -> Mapping[str, float]:
        return self._found[job]

    def __iter__(self) -> Iterator[int]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)
