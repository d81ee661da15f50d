"""Forgetting: how far the global model's accuracy on each class has fallen below its peak.

    F = mean_c max_{t < T} (A_c^t - A_c^T)

with A_c^t the global model's accuracy on class c at evaluation t and T the last one (Lee et al. 2022,
FedNTD, Equation 4, after backward transfer, Chaudhry et al. 2018). It is not clipped: where all classes are
better than ever, it is negative. Only evaluations count, so that it depends on ``evaluate.every``; the
first gives no F.
"""

from collections.abc import Iterator

import numpy as np

from edgefl.measures import Measure
from edgefl.protocol import Observation, Row

_BEST = "best so far"


class Params(Measure):
    NEEDS = ("global model",)
    UNIT = "share"

    def measure(self, seen: Observation) -> Iterator[Row]:
        """The forgetting of each class and its mean, and each class's best accuracy so far and now."""
        accuracy = seen.class_accuracies(seen.model)
        best = np.full(seen.classes, np.nan)
        for row in seen.earlier.get("forgetting", ()):
            if row.figure == _BEST:
                best[int(row.label)] = row.value
        forgotten = best - accuracy
        for label in range(seen.classes):
            yield Row(float(forgotten[label]), label=str(label))
            yield Row(float(np.fmax(best[label], accuracy[label])), _BEST, label=str(label))
        if not np.isnan(forgotten).all():
            yield Row(float(np.nanmean(forgotten)))
