"""Pareto with the given minimum and tail index; the mean is infinite up to tail 1. A stress test."""

from pydantic import Field

from edgefl.core.arrays import Floats
from edgefl.core.params import Positive
from edgefl.core.samplers import Sampler


class Params(Sampler):
    minimum: Positive = Field(1.0, description="the smallest value")
    tail: Positive = Field(description="tail index; the lower, the heavier the tail")

    def draw(self, uniform: Floats) -> Floats:
        return self.minimum * uniform[0] ** (-1.0 / self.tail)
