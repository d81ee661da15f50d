"""Rows of single clients, and of all of them together."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from edgefl.protocol import Row


def over_clients(
    values: Mapping[int, float], figure: str = "", *, model: str, label: str = ""
) -> Iterator[Row]:
    """Each client's value, their mean, and as the figure "std" their standard deviation (n).

    Nothing is given where there are no values.
    """
    if not values:
        return
    for client, value in values.items():
        yield Row(value, figure, model, client, label)
    several = np.array(list(values.values()))
    yield Row(float(several.mean()), figure, model, label=label)
    yield Row(float(several.std()), f"{figure} std".strip(), model, label=label)


def means(each: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """By name, such as a layer's, the mean over those that have it."""
    found = defaultdict[str, list[float]](list)
    for one in each:
        for name, value in one.items():
            found[name].append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}
