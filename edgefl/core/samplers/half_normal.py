"""minimum + |N(0, scale)|; mean minimum + scale * sqrt(2 / pi). The delay of FLSim and FedBuff."""

import numpy as np
from pydantic import Field

from edgefl.core.arrays import Floats
from edgefl.core.draws import normals
from edgefl.core.params import NonNegative, Positive
from edgefl.core.samplers import Sampler


class Params(Sampler):
    minimum: Positive = Field(1.0, description="the smallest value")
    scale: NonNegative = Field(description="standard deviation of the normal distribution")

    def draw(self, uniform: Floats) -> Floats:
        return self.minimum + self.scale * np.abs(normals(uniform))
