"""The part of a run that was done before: its world goes through it again, without training."""

import json
from collections.abc import Callable, Sequence

import numpy as np

from edgefl.core.errors import UserError
from edgefl.core.event import ServerEvent
from edgefl.store.checkpoints import Checkpoint, checkpoints_of
from edgefl.store.events import EventDigest, event_rows
from edgefl.store.reader import Reader, content_damage
from edgefl.world.job import stacked
from edgefl.world.needs import Feedback, Merge, Need


class Answers:
    """The feedback of a run, for its world to go the same way without training.

    Attributes:
        last: by client, the job that wrote its state, as far as needs were answered.
    """

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.last: dict[int, int] = {}

    def to(self, need: Need) -> Feedback:
        """What the run answered to the need that is its own in the same place."""
        rows = need.late_rows
        if isinstance(need, Merge):
            rows = np.concatenate([need.rows, rows]) if len(rows) else need.rows
        stateful = np.array([prices.stateful for prices in need.plan.prices])
        wrote = rows[stateful[rows["exchange"]]]
        wrote = wrote[np.argsort(wrote["job"])]
        self.last.update(zip(wrote["client"].tolist(), wrote["job"].tolist(), strict=True))
        sql = (
            "SELECT job, scalars FROM jobs WHERE scalars IS NOT NULL "
            "AND job IN (SELECT value FROM json_each(?)) ORDER BY job"
        )
        found = self.reader.query(sql, json.dumps(rows["job"].tolist()))
        scalars = {row["job"]: json.loads(row["scalars"]) for row in found}
        if isinstance(need, Merge):
            return Feedback(scalars)
        sql = "SELECT model, accuracy FROM evaluations WHERE version = ? ORDER BY rowid"
        scored = self.reader.query(sql, need.version)
        return Feedback(scalars, {row["model"]: row["accuracy"] for row in scored})


class Past:
    """What happened until a checkpoint.

    Attributes:
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
    """The newest checkpoint of which nothing is damaged, each that is being noted; None to begin again.

    Where the run is ``raised``, to be longer than it was to be, it must be a regular one.
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
