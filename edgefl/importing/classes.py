"""Classes of users: many users' rates as a few, since a fleet's prices are by kind of client."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgefl.core.draws import Floats
from edgefl.core.poisson import Ints

MOST_CLASSES = 128


class Classes(NamedTuple):
    """Classes, and whose they are.

    Attributes:
        values: the values of each class, (classes, columns).
        of: each user's class, (users,).
        rounding: the largest relative difference between a user's value and its class's.
    """

    values: Floats
    of: Ints
    rounding: float


def classes(values: Floats, most: int = MOST_CLASSES) -> Classes:
    """Users by their values: a class for each value if these are few, or classes of like values.

    The widest class, on a logarithmic scale, is halved until there are as many as there may be. A class's
    value is the geometric mean of its least and its largest.

    Args:
        values: positive and finite, (users, columns).
        most: the most classes.
    """
    distinct, inverse = np.unique(values, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    if len(distinct) <= most:
        return Classes(distinct, inverse, 0.0)
    scaled = np.log(distinct)
    groups: list[NDArray[np.int64]] = [np.arange(len(distinct))]
    widths = [np.ptp(scaled, axis=0)]
    while len(groups) < most:
        widest = max(range(len(groups)), key=lambda index: float(widths[index].max()))
        group, column = groups[widest], int(widths[widest].argmax())
        if not widths[widest][column]:
            break  # different numbers of the same logarithm
        along = scaled[group, column]
        # Below the largest also where the mean is rounded up to it.
        low = along <= min((along.min() + along.max()) / 2, np.nextafter(along.max(), -np.inf))
        halves = [group[low], group[~low]]
        groups[widest : widest + 1] = halves
        widths[widest : widest + 1] = [np.ptp(scaled[half], axis=0) for half in halves]
    means = np.array([np.exp((scaled[one].min(axis=0) + scaled[one].max(axis=0)) / 2) for one in groups])
    order = np.lexsort(means.T[::-1])
    of_distinct = np.empty(len(distinct), dtype=np.int64)
    for place, index in enumerate(order.tolist()):
        of_distinct[groups[index]] = place
    found = means[order]
    of = of_distinct[inverse]
    return Classes(found, of, float(np.abs(found[of] / values - 1).max()))
