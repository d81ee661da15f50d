"""Who took part, over rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgefl.store import Reader


@dataclass(frozen=True)
class Participation:
    """Of one run.

    Attributes:
        run: its place.
        round: rounds, from 0.
        distinct: how many clients had a job merged by its end.
        fairness: Jain's index by its end; see ``usage.Usage``.
    """

    run: int
    round: Sequence[int]
    distinct: Sequence[int]
    fairness: Sequence[float]


def participation(reader: Reader, run: int) -> list[Participation]:
    """Those of a run, whose place is ``run``."""
    del reader, run
    return []
