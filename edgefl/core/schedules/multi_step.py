"""The rate times gamma at each milestone round."""

from typing import Annotated

from pydantic import Field

from edgefl.core.params import Positive
from edgefl.core.schedules import Schedule


class Params(Schedule):
    milestones: Annotated[tuple[int, ...], Field(description="rounds at which the rate changes, from 0")]
    gamma: Annotated[Positive, Field(description="factor of each milestone")] = 0.1

    def factor(self, round_: int, rounds: int) -> float:  # noqa: ARG002 - every schedule is asked the same way
        return float(self.gamma ** sum(round_ >= milestone for milestone in self.milestones))
