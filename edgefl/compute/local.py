"""Training in this process, unit after unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgefl.compute.job import EngineContext, Outcome, Trainer
from edgefl.core.event import TrainingJob


class Local:
    """An engine that trains in this process."""

    def __init__(self, context: EngineContext, trainer: Trainer, *, ahead: bool) -> None:
        self._context = context
        self._trainer = trainer
        self.ahead = ahead

    def outcomes(self, jobs: Sequence[TrainingJob]) -> Iterator[Outcome]:
        """Trains jobs, unit after unit; see ``Engine``."""
        for unit in self._trainer.units(jobs, self._context.size):
            yield from self._trainer.work(self._context.group(unit))

    def close(self) -> None:
        """Holds nothing."""
