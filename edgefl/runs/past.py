"""The part of a run that was done before: its world goes through it again, without training."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from edgefl.core.errors import UserError
from edgefl.core.event import ServerEvent
from edgefl.store.checkpoints import Checkpoint, checkpoints_of
from edgefl.store.events import EventDigest, event_rows
from edgefl.store.reader import Reader
from edgefl.store.sums import content_damage
from edgefl.world.job import stacked
from edgefl.world.needs import Evaluate, Feedback, Merge, Need

_AT_ONCE = 500


class Answers:
    """The feedback of a run, for its world to go the same way without training.

    Attributes:
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


class Past:
    """What happened until a checkpoint.

    Attributes:
        checkpoint: where it ends.
        answers: what the run answered.
        jobs: those that have ended so far.
        turn: the server's last turn so far.
    """

    def __init__(self, reader: Reader, checkpoint: Checkpoint) -> None:
        """The world is at its beginning."""
        self.checkpoint, self.reader, self.answers = checkpoint, reader, Answers(reader)
        self.jobs: list[int] = []
        self.turn = 0
        self._happened = EventDigest()

    def answer(self, need: Need, events: Sequence[ServerEvent], rows: Sequence[np.ndarray]) -> Feedback:
        """What the run answered, given what has happened since the last need."""
        self._happened.add_events(event_rows(events))
        self.turn = max([self.turn, *(event.turn for event in events)])
        if rows:
            jobs = stacked(rows)
            self._happened.add("jobs", jobs)
            self.jobs += jobs["job"].tolist()
        return self.answers.to(need)

    def check(self) -> None:
        """Checks that the same has happened as in the run, once the checkpoint is reached.

        Raises:
            UserError: it has not.
        """
        if self._happened.text() != self.checkpoint.events:
            raise self.differs()

    def differs(self) -> UserError:
        """The error where other things happen than did."""
        name, version = self.reader.folder.name, self.checkpoint.place.version
        return UserError(
            f"{name}: up to version {version} this edgefl gives other events than the run has",
            where=str(self.reader.folder),
            hint="resume it with the edgefl that began it, or run its scenario again",
        )


def whole(reader: Reader, note: Callable[[str], None], *, raised: bool) -> Checkpoint | None:
    """The newest checkpoint of which nothing is damaged; None to begin again.

    Args:
        note: called with a line for each that is damaged.
        raised: whether the run is to be longer than it was to be, so that it must be a regular one.
    """
    name = reader.folder.name
    for checkpoint in checkpoints_of(reader):
        if raised and not checkpoint.place.regular:
            continue
        found = (content_damage(reader.folder / file.file, file.sha256) for file in checkpoint.files)
        damage = next(filter(None, found), "")
        if not damage:
            return checkpoint
        note(f"{name}: {damage}; the checkpoint at version {checkpoint.place.version} is left out")
    if reader.query("SELECT 1 FROM merges LIMIT 1"):
        note(f"{name}: no checkpoint to go on from; the run begins again")
    return None
