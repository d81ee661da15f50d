"""exp(N(mu, sigma)); mean exp(mu + sigma^2 / 2). FedScale's speeds have mu 1, sigma 0.6."""

import numpy as np
from pydantic import Field

from edgefl.core.arrays import Floats
from edgefl.core.draws import normals
from edgefl.core.params import NonNegative
from edgefl.core.samplers import Sampler


class Params(Sampler):
    mu: float = Field(0.0, description="mean of the logarithm; the median is exp(mu)")
    sigma: NonNegative = Field(description="standard deviation of the logarithm")

    def draw(self, uniform: Floats) -> Floats:
        return np.exp(self.mu + self.sigma * normals(uniform))
