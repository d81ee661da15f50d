"""minimum + Exp(scale); mean minimum + scale (Lee 2018)."""

from __future__ import annotations

import numpy as np

from edgefl.core.params import Positive
from edgefl.core.samplers import Floats, Sampler


class Params(Sampler):
    """The smallest multiplier, and the mean of what is added to it."""

    minimum: Positive = 1.0
    scale: Positive

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """See ``Sampler.draw``."""
        return self.minimum + rng.exponential(self.scale, size)
