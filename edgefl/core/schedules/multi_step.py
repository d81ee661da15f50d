"""The rate times gamma at each milestone round."""

from __future__ import annotations

from edgefl.core.params import Positive
from edgefl.core.schedules import Schedule


class Params(Schedule):
    """When the rate falls, and how far."""

    milestones: tuple[int, ...]
    gamma: Positive = 0.1

    def factor(self, round_: int, rounds: int) -> float:  # noqa: ARG002 - every schedule is asked the same way
        """See ``Schedule.factor``."""
        return float(self.gamma ** sum(round_ >= milestone for milestone in self.milestones))
