"""The rate times gamma, once every so many rounds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from edgefl.core.params import Positive
from edgefl.core.schedules import Schedule


class Params(Schedule):
    """When the rate falls, and how far."""

    every: Annotated[int, Field(gt=0)]
    gamma: Positive = 0.1

    def factor(self, round_: int, rounds: int) -> float:  # noqa: ARG002 - every schedule is asked the same way
        """See ``Schedule.factor``."""
        return self.gamma ** (round_ // self.every)
