"""Pareto with the given minimum and tail index; the mean is infinite up to tail 1. A stress test."""

from __future__ import annotations

import numpy as np

from edgefl.core.params import Positive
from edgefl.core.samplers import Floats, Sampler


class Params(Sampler):
    """The smallest multiplier and the tail index."""

    minimum: Positive = 1.0
    tail: Positive

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """See ``Sampler.draw``."""
        return self.minimum * (1.0 + rng.pareto(self.tail, size))
