"""Callbacks that a group of runs makes as it goes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class Callbacks:
    """Called as runs progress. Every method does nothing; a subclass overrides what it needs."""

    def planning(self, runs: int) -> None:
        """Planning of ``runs`` runs begins."""

    def planned(self, notes: Sequence[str]) -> None:
        """All runs are planned; ``notes`` say which clients were refused."""

    def started(self, name: str, rounds: int | None, folder: Path) -> None:
        """A run of so many rounds, if that is known, begins; its directory is ``folder``."""

    def engine(self, line: str) -> None:
        """The run's engine is ready; ``line`` says which it is, why, and how many processes train."""

    def merged(self, round_: int, t_s: float, loss: float | None) -> None:
        """The server merged uploads into a new version."""

    def evaluated(self, accuracies: dict[str, float]) -> None:
        """A version was evaluated; accuracies by model, "global" and "personal"."""

    def ended(self, name: str, status: str, reason: str) -> None:
        """A run ended, "done" or "failed"; ``reason`` says why it failed."""
