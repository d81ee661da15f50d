"""minimum + Exp(scale); mean minimum + scale (Lee 2018)."""

import numpy as np
from pydantic import Field

from edgefl.core.arrays import Floats
from edgefl.core.params import Positive
from edgefl.core.samplers import Sampler


class Params(Sampler):
    minimum: Positive = Field(1.0, description="the smallest value")
    scale: Positive = Field(description="mean of what is added to it")

    def draw(self, uniform: Floats) -> Floats:
        return self.minimum - self.scale * np.log(uniform[0])
