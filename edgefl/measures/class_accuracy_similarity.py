"""Similarity of the global model's class-wise accuracy to that of the round before.

    <A, A'> / (||A||_2 ||A'||_2),        A = (A_1, ..., A_C)

with A_c the global model's accuracy on class c and A' the accuracies of the version before the last merge
(Lee et al. 2022, FedNTD, section 2.1 and Figure 2b), whether that was evaluated or not. Classes without test
samples are left out; a model that gets nothing right has no similarity.
"""

from collections.abc import Iterator

import numpy as np

from edgefl.measures import Measure
from edgefl.protocol import Observation, Row


class Params(Measure):
    NEEDS = ("global model",)

    def measure(self, seen: Observation) -> Iterator[Row]:
        """One row, unless nothing was merged since the last evaluation."""
        if seen.before is None:
            return
        after, before = (np.nan_to_num(seen.class_accuracies(one)) for one in (seen.model, seen.before))
        lengths = np.linalg.norm(after) * np.linalg.norm(before)
        yield Row(float(after @ before / lengths) if lengths else float("nan"))
