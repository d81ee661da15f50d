"""Expected calibration error (ECE) of the global model.

    ECE = sum_m |B_m| / n * |acc(B_m) - conf(B_m)|

over M bins of equal width of the confidence, which is the largest softmax probability at temperature 1; B_m
are the test samples with a confidence in ((m - 1) / M, m / M] (Guo et al. 2017, Equation 3; M = 15 in their
section 3).
"""

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from edgefl.measures import Measure
from edgefl.protocol import Observation, Row


class Params(Measure):
    NEEDS = ("global model",)
    UNIT = "share"

    bins: int = Field(15, gt=0, description="M, the number of bins of equal width.")

    def measure(self, seen: Observation) -> Iterator[Row]:
        confidence = seen.global_logits.softmax(dim=-1).amax(dim=-1).numpy()
        # Rounding may make the largest of equal probabilities a little more than 1.
        bins = np.clip(np.ceil(confidence * self.bins).astype(np.int64) - 1, 0, self.bins - 1)
        gap = seen.correct(seen.model) - confidence
        yield Row(float(np.abs(np.bincount(bins, weights=gap, minlength=self.bins)).sum() / len(gap)))
