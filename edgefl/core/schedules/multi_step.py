"""The rate times gamma at each milestone round."""

from pydantic import Field

from edgefl.core.params import Positive
from edgefl.core.schedules import Schedule


class Params(Schedule):
    milestones: tuple[int, ...] = Field(description="rounds at which the rate changes, from 0")
    gamma: Positive = Field(0.1, description="factor of each milestone")

    def factor(self, round_: int, rounds: int) -> float:  # noqa: ARG002 - every schedule is asked the same way
        return float(self.gamma ** sum(round_ >= milestone for milestone in self.milestones))
