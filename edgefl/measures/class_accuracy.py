"""Class-wise accuracy of the global model, their mean, and the worst class.

    A_c = share of the test samples of class c whose largest logit is c's

(Lee et al. 2022, FedNTD, section 2.1, where it is followed over rounds.) A class without test samples is
left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgefl.core.params import Component
from edgefl.protocol import Observation, Row

NEEDS = ("global model",)
UNIT = "share"


class Params(Component):
    """None."""


def measure(params: Params, seen: Observation) -> Iterator[Row]:  # noqa: ARG001
    """A row for each class; all classes together are their mean."""
    if seen.global_model is None:
        return
    accuracy = seen.class_accuracies(seen.global_model)
    for label, value in enumerate(accuracy.tolist()):
        yield Row(value, label=str(label))
    yield Row(float(np.nanmean(accuracy)))
    yield Row(float(np.nanmin(accuracy)), "worst")
