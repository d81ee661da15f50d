"""Pareto with the given minimum and tail index; the mean is infinite up to tail 1. A stress test."""

from typing import Annotated

from pydantic import Field

from edgefl.core.arrays import Floats
from edgefl.core.params import Positive
from edgefl.core.samplers import Sampler


class Params(Sampler):
    minimum: Annotated[Positive, Field(description="the smallest value")] = 1.0
    tail: Annotated[Positive, Field(description="tail index; the lower, the heavier the tail")]

    def draw(self, uniform: Floats) -> Floats:
        drawn: Floats = self.minimum * uniform[0] ** (-1.0 / self.tail)
        return drawn
