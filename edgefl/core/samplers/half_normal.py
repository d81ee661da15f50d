"""minimum + |N(0, scale)|; mean minimum + scale * sqrt(2 / pi). The delay of FLSim and FedBuff."""

from typing import Annotated

import numpy as np
from pydantic import Field

from edgefl.core.arrays import Floats
from edgefl.core.draws import normals
from edgefl.core.params import NonNegative, Positive
from edgefl.core.samplers import Sampler


class Params(Sampler):
    minimum: Annotated[Positive, Field(description="the smallest value")] = 1.0
    scale: Annotated[NonNegative, Field(description="standard deviation of the normal distribution")]

    def draw(self, uniform: Floats) -> Floats:
        return self.minimum + self.scale * np.abs(normals(uniform))
