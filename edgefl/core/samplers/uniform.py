"""Uniform between low and high."""

from pydantic import Field, model_validator

from edgefl.core.arrays import Floats
from edgefl.core.params import Positive
from edgefl.core.samplers import Sampler


class Params(Sampler):
    low: Positive = Field(description="the smallest value")
    high: Positive = Field(description="the upper end")

    @model_validator(mode="after")
    def _ordered(self) -> "Params":
        if self.low > self.high:
            raise ValueError("low must not be above high")
        return self

    def draw(self, uniform: Floats) -> Floats:
        return self.low + (self.high - self.low) * uniform[0]
