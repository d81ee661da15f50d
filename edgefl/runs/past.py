"""The part of a run that was done before: its world goes through it again, without training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from edgefl.core.errors import UserError
from edgefl.core.event import ServerEvent
from edgefl.core.plan import Plan
from edgefl.runs.answers import Answers
from edgefl.runs.so_far import scored
from edgefl.store import Checkpoint, Happened, Reader, checkpoints_of, content_damage
from edgefl.world.needs import Feedback, Need


@dataclass
class Past:
    """What happened until a checkpoint.

    Attributes:
        checkpoint: where it ends.
        reader: the run.
        answers: what the run answered.
        happened: what has happened so far.
    """

    checkpoint: Checkpoint
    reader: Reader
    answers: Answers
    happened: Happened

    @classmethod
    def of(cls, plan: Plan, reader: Reader, checkpoint: Checkpoint) -> Past:
        """The past of a run until a checkpoint; the world is at its beginning."""
        return cls(checkpoint, reader, Answers(reader), Happened([prices.exchange for prices in plan.prices]))

    def answer(self, need: Need, events: Sequence[ServerEvent], rows: Sequence[np.ndarray]) -> Feedback:
        """What the run answered, given what has happened since the last need."""
        self.happened.add(events, rows)
        return self.answers.to(need)

    def check(self) -> None:
        """Checks that the same has happened as in the run, once the checkpoint is reached.

        Raises:
            UserError: other events have.
        """
        if self.happened.event_hash() != self.checkpoint.events:
            raise self.differs()

    def differs(self) -> UserError:
        """The error where other things happen than did."""
        name, version = self.reader.folder.name, self.checkpoint.place.version
        return UserError(
            f"{name}: up to version {version} this edgefl gives other events than the run has",
            where=str(self.reader.folder),
            hint="resume it with the edgefl that began it, or run its scenario again",
        )

    def accuracy(self) -> float:
        """The best accuracy so far, of the model that is scored first; -1 without evaluations."""
        place = self.checkpoint.place
        found = self.reader.query(
            "SELECT MAX(accuracy) AS best FROM evaluations AS one "
            "WHERE (version < ? OR version = ? AND ?) AND (model = 'global' OR NOT EXISTS (SELECT 1 "
            "FROM evaluations AS other WHERE other.version = one.version AND other.model = 'global'))",
            place.version,
            place.version,
            place.evaluated,
        )
        best: float | None = found[0]["best"]
        return -1.0 if best is None else best

    def scores(self) -> dict[str, float]:
        """The last evaluation and the last loss of training, by key as in ``Progress``."""
        place = self.checkpoint.place
        evaluated = self.reader.query(
            "SELECT model, accuracy, loss FROM evaluations WHERE version = "
            "(SELECT MAX(version) FROM evaluations WHERE version < ? OR version = ? AND ?) ORDER BY rowid",
            place.version,
            place.version,
            place.evaluated,
        )
        losses = self.reader.query(
            "SELECT loss FROM merges WHERE version <= ? AND loss IS NOT NULL ORDER BY version DESC LIMIT 1",
            place.version,
        )
        accuracies = {row["model"]: row["accuracy"] for row in evaluated}
        found = scored(accuracies, {row["model"]: row["loss"] for row in evaluated})
        return {**found, "training_loss": losses[0]["loss"]} if losses else found


def whole(reader: Reader, note: Callable[[str], None], *, raised: bool) -> Checkpoint | None:
    """The newest checkpoint of which nothing is damaged; None to begin again.

    Args:
        reader: the run.
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
