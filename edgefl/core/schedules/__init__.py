"""Learning-rate schedules, one file each."""

from abc import abstractmethod
from typing import ClassVar

from edgefl.core.params import Component


class Schedule(Component):
    NEEDS_ROUNDS: ClassVar[bool] = False
    """Whether the factor depends on the number of rounds, which must then be given."""

    @abstractmethod
    def factor(self, round_: int, rounds: int) -> float:
        """What the base rate is multiplied by in ``round_`` (from 0) of ``rounds``, 0 if not known."""
