"""What a run tells whoever looks on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class Watch:
    """Looks on at a group of runs; every method does nothing, so that a watcher overrides what it likes."""

    def planning(self, runs: int) -> None:
        """Planning begins; there are so many runs."""

    def planned(self, notes: Sequence[str]) -> None:
        """All runs are planned; ``notes`` say what was assumed or refused."""

    def started(self, name: str, rounds: int, folder: Path) -> None:
        """A run begins; it is kept in ``folder``."""

    def merged(self, round_: int, t_s: float, loss: float | None) -> None:
        """A server version was made."""

    def evaluated(self, accuracies: dict[str, float]) -> None:
        """A version was scored; by "global" and "personal"."""

    def ended(self, name: str, status: str, reason: str) -> None:
        """A run ended, "done" or "failed"."""
