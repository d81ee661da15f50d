"""The same multiplier every time."""

from typing import Annotated

import numpy as np
from pydantic import Field

from edgefl.core.arrays import Floats
from edgefl.core.params import Positive
from edgefl.core.samplers import Sampler


class Params(Sampler):
    value: Annotated[Positive, Field(description="what everybody has")] = 1.0

    def draw(self, uniform: Floats) -> Floats:
        return np.full(uniform.shape[1], self.value)
