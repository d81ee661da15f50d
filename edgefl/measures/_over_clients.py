"""Rows of single clients, and of all of them together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
