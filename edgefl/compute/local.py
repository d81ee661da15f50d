"""Training in this process, unit after unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgefl.compute.job import Bench, Outcome, Trainer, shortened
from edgefl.core.event import Job


class Local:
    """An engine that works in this process.

    Attributes:
        ahead: whether it gains from jobs beyond those that are wanted now.
    """

    def __init__(self, bench: Bench, trainer: Trainer, *, ahead: bool) -> None:
        self._bench = bench
        self._trainer = trainer
        self.ahead = ahead

    def outcomes(self, jobs: Sequence[Job], *, limit: int | None = None) -> Iterator[Outcome]:
        """Trains jobs, unit after unit; see ``Engine``."""
        for unit in self._trainer.units(jobs, self._bench.size):
            group = self._bench.group(unit)
            for bundle in self._trainer.work(group if limit is None else shortened(group, limit)):
                yield from bundle.outcomes()

    def close(self) -> None:
        """Holds nothing."""
