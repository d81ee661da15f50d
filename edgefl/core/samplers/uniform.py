"""Uniform between low and high."""

from __future__ import annotations

import numpy as np
from pydantic import model_validator

from edgefl.core.params import Positive
from edgefl.core.samplers import Floats, Sampler


class Params(Sampler):
    """The interval [low, high)."""

    low: Positive
    high: Positive

    @model_validator(mode="after")
    def _ordered(self) -> Params:
        if self.low > self.high:
            raise ValueError("low must not be above high")
        return self

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """See ``Sampler.draw``."""
        return rng.uniform(self.low, self.high, size)
