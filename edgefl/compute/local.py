"""Training in this process, unit after unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgefl.compute.job import EngineContext, Outcome, Trainer, shortened
from edgefl.core.event import TrainingJob


class Local:
    """An engine that trains in this process.

    Attributes:
        ahead: whether it gains from jobs beyond those that the next merge takes.
    """

    def __init__(self, context: EngineContext, trainer: Trainer, *, ahead: bool) -> None:
        self._context = context
        self._trainer = trainer
        self.ahead = ahead

    def outcomes(self, jobs: Sequence[TrainingJob], *, limit: int | None = None) -> Iterator[Outcome]:
        """Trains jobs, unit after unit; see ``Engine``."""
        for unit in self._trainer.units(jobs, self._context.size):
            group = self._context.group(unit)
            yield from self._trainer.work(group if limit is None else shortened(group, limit))

    def close(self) -> None:
        """Holds nothing."""
