"""Which client has how many samples of which class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgefl.show.page.sections.shared import OfRuns
from edgefl.store import Reader

# What a picture of clients and classes can show.
_MOST_CELLS, _MOST_CLIENTS = 50_000, 1000
_SQL = "SELECT client, label, samples FROM class_counts"
_DTYPES = dict.fromkeys(("client", "label", "samples"), np.int64)


@dataclass(frozen=True)
class Partition(OfRuns):
    """Of all runs that share it.

    Attributes:
        runs: their places.
        classes: the names of the classes, in the order of labels.
        clients: the clients that are listed, ascending: all, or some at even distances.
        counts: training samples, (clients, classes).
        omitted: how many clients are not listed.
        why: why there are no counts, in words; empty where there are some.
    """

    classes: Sequence[str]
    clients: Sequence[int]
    counts: Sequence[Sequence[int]]
    omitted: int
    why: str


def partition(reader: Reader, run: int) -> Partition:
    """That of a run, whose place is ``run``."""
    classes = reader.meta["classes"]
    if why := reader.meta["class_counts"]:
        return Partition([run], classes, [], [], 0, why)
    (clients,) = (row["clients"] for row in reader.query("SELECT COUNT(*) AS clients FROM fleet"))
    listed = max(1, min(_MOST_CLIENTS, _MOST_CELLS // len(classes), clients))
    chosen = np.unique(np.linspace(0, clients - 1, listed).round().astype(np.int64))
    found = reader.arrays(_SQL, **_DTYPES)
    counts = np.zeros((clients, len(classes)), dtype=np.int64)
    counts[found["client"], found["label"]] = found["samples"]
    return Partition(
        runs=[run],
        classes=classes,
        clients=chosen.tolist(),
        counts=counts[chosen].tolist(),
        omitted=clients - len(chosen),
        why="",
    )
