"""exp(N(mu, sigma)); mean exp(mu + sigma**2 / 2). FedScale's speeds have mu 1, sigma 0.6."""

from __future__ import annotations

import numpy as np

from edgefl.core.params import NonNegative
from edgefl.core.samplers import Floats, Sampler


class Params(Sampler):
    """The logarithm's mean and standard deviation."""

    mu: float = 0.0
    sigma: NonNegative

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """See ``Sampler.draw``."""
        return rng.lognormal(self.mu, self.sigma, size)
