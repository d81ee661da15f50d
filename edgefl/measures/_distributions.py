"""Accuracies on the classes that a client has, and on those that it lacks."""

import numpy as np

from edgefl.core.arrays import Floats


def in_and_out(shares: Floats, accuracy: Floats) -> tuple[float, float]:
    """The accuracies on a distribution of classes and on its complement; see ``local_accuracy``.

    Args:
        shares: of each class (C,).
        accuracy: on each class (C,); NaN for one without test samples.
    """
    tested = ~np.isnan(accuracy)
    with np.errstate(invalid="ignore", divide="ignore"):
        others = (1 - shares) / (len(shares) - 1)
        one, other = (
            float((weights[tested] * accuracy[tested]).sum() / weights[tested].sum())
            for weights in (shares, others)
        )
    return one, other
