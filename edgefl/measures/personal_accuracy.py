"""Accuracy of clients' own models on their own test sets: mean, deviation and worst decile.

The mean and the standard deviation (n) over clients are those of FedClassAvg's Table 2 (Jang et al. 2022);
the worst decile is the mean over the ceil(N / 10) clients of the lowest accuracies (Li et al. 2020, q-FFL,
Table 1: "worst 10%"). Clients that never trained count with the model that they have. Each client's
accuracy is in the table ``client_evaluations``.
"""

from collections.abc import Iterator

import numpy as np

from edgefl.measures import Measure
from edgefl.protocol import Observation, Row

_SHARE = 10


class Params(Measure):
    UNIT = "share"

    def measure(self, seen: Observation) -> Iterator[Row]:
        accuracies = np.sort(seen.personal_accuracies)
        if len(accuracies):
            yield Row(float(accuracies.mean()), model="personal")
            yield Row(float(accuracies.std()), "std", "personal")
            worst = accuracies[: -(-len(accuracies) // _SHARE)]
            yield Row(float(worst.mean()), "worst decile", "personal")
