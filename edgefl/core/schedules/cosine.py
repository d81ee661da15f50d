"""Half a cosine from 1 down to a floor over all rounds, one step a round."""

import math
from typing import Annotated, ClassVar

from pydantic import Field

from edgefl.core.params import Share
from edgefl.core.schedules import Schedule


class Params(Schedule):
    NEEDS_ROUNDS: ClassVar[bool] = True
    floor: Annotated[Share, Field(description="the rate's last factor")] = 0.0

    def factor(self, round_: int, rounds: int) -> float:
        return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * round_ / rounds)) / 2
