"""Class-wise accuracy of the global model, their mean, and the worst class.

    A_c = share of the test samples of class c whose largest logit is c's

(Lee et al. 2022, FedNTD, section 2.1, where it is followed over rounds.) A class without test samples is
left out.
"""

from collections.abc import Iterator

import numpy as np

from edgefl.measures import Measure
from edgefl.protocol import Observation, Row


class Params(Measure):
    NEEDS = ("global model",)
    UNIT = "share"

    def measure(self, seen: Observation) -> Iterator[Row]:
        accuracy = seen.class_accuracies(seen.model)
        for label, value in enumerate(accuracy.tolist()):
            yield Row(value, label=str(label))
        yield Row(float(np.nanmean(accuracy)))
        yield Row(float(np.nanmin(accuracy)), "worst")
