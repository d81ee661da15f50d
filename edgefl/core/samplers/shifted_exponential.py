"""minimum + Exp(scale); mean minimum + scale (Lee 2018)."""

from typing import Annotated

import numpy as np
from pydantic import Field

from edgefl.core.arrays import Floats
from edgefl.core.params import Positive
from edgefl.core.samplers import Sampler


class Params(Sampler):
    minimum: Annotated[Positive, Field(description="the smallest value")] = 1.0
    scale: Annotated[Positive, Field(description="mean of what is added to it")]

    def draw(self, uniform: Floats) -> Floats:
        drawn: Floats = self.minimum - self.scale * np.log(uniform[0])
        return drawn
