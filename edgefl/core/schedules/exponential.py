"""The rate times gamma every round."""

from pydantic import Field

from edgefl.core.params import Positive
from edgefl.core.schedules import Schedule


class Params(Schedule):
    gamma: Positive = Field(description="factor of each round")

    def factor(self, round_: int, rounds: int) -> float:  # noqa: ARG002 - every schedule is asked the same way
        return float(self.gamma**round_)
