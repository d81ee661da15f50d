"""The same multiplier every time."""

from __future__ import annotations

import numpy as np

from edgefl.core.params import Positive
from edgefl.core.samplers import Floats, Sampler


class Params(Sampler):
    """The one multiplier."""

    value: Positive = 1.0

    def draw(self, rng: np.random.Generator, size: int) -> Floats:  # noqa: ARG002 - every sampler is asked the same way
        """See ``Sampler.draw``."""
        return np.full(size, self.value)
