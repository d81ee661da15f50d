"""How many clients are busy, and how stale merged uploads are, over virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgefl.store import Reader


@dataclass(frozen=True)
class Activity:
    """Of one run.

    Attributes:
        run: its place.
        t_s: the beginnings of equal intervals of virtual time, at most 400.
        active_mean: jobs in flight in each, the mean over its time.
        active_max: the most at once.
        staleness_t_s: times of merges.
        staleness_mean: by how many versions the merged uploads are behind, in the mean.
        staleness_max: the most.
    """

    run: int
    t_s: Sequence[float]
    active_mean: Sequence[float]
    active_max: Sequence[int]
    staleness_t_s: Sequence[float]
    staleness_mean: Sequence[float]
    staleness_max: Sequence[int]


def activity(reader: Reader, run: int) -> list[Activity]:
    """Those of a run, whose place is ``run``."""
    del reader, run
    return []
