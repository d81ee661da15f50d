"""Learning-rate schedules, one file each."""

from __future__ import annotations

from abc import abstractmethod

from edgefl.core.named import Named


class Schedule(Named):
    """What every schedule has."""

    @abstractmethod
    def factor(self, round_: int, rounds: int) -> float:
        """What the base rate is multiplied by in ``round_`` (from 0) of ``rounds``."""
