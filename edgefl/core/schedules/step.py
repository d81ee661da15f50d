"""The rate times gamma at regular intervals."""

from pydantic import Field

from edgefl.core.params import Positive
from edgefl.core.schedules import Schedule


class Params(Schedule):
    every: int = Field(gt=0, description="rounds between two steps")
    gamma: Positive = Field(0.1, description="factor of each step")

    def factor(self, round_: int, rounds: int) -> float:  # noqa: ARG002 - every schedule is asked the same way
        return self.gamma ** (round_ // self.every)
