"""Half a cosine from 1 down to a floor over all rounds, one step a round."""

import math
from typing import ClassVar

from pydantic import Field

from edgefl.core.params import Share
from edgefl.core.schedules import Schedule


class Params(Schedule):
    NEEDS_ROUNDS: ClassVar[bool] = True
    floor: Share = Field(0.0, description="the rate's last factor")

    def factor(self, round_: int, rounds: int) -> float:
        return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * round_ / rounds)) / 2
