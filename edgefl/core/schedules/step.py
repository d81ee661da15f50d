"""The rate times gamma at regular intervals."""

from typing import Annotated

from pydantic import Field

from edgefl.core.params import Positive
from edgefl.core.schedules import Schedule


class Params(Schedule):
    every: Annotated[int, Field(gt=0, description="rounds between two steps")]
    gamma: Annotated[Positive, Field(description="factor of each step")] = 0.1

    def factor(self, round_: int, rounds: int) -> float:  # noqa: ARG002 - every schedule is asked the same way
        return self.gamma ** (round_ // self.every)
