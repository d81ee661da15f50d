"""How many of the clients that a round asks for took part in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from edgefl.core.event import Kind


class Turnout(NamedTuple):
    """Of a round, in the mean over all of them.

    Attributes:
        asked: how many clients it asks for.
        dispatched: how many of these began.
        merged: how many of these were merged.
    """

    asked: int
    dispatched: float
    merged: float


def mean_turnout(found: Sequence[Turnout]) -> Turnout:
    """That of several runs, of at least one."""
    asked, dispatched, merged = map(fmean, zip(*found, strict=True))
    return Turnout(round(asked), dispatched, merged)


def turnout(
    asked: int | None, rounds: int | None, jobs: Mapping[str, Mapping[str, int]], every: Mapping[str, int]
) -> Turnout | None:
    """That of a run; None of a policy that asks for no rounds, and before the first one is over.

    Args:
        asked: how many clients a round asks for; None where there is no such number.
        rounds: how many there were.
        jobs: how many each exchange had, by their ending.
        every: of the exchanges in rounds, in one of how many rounds each is.
    """
    if not asked or not rounds:
        return None

    def mean(counts: Mapping[str, Any]) -> float:
        return max((counts.get(name, 0) * each / rounds for name, each in every.items()), default=0.0)

    dispatched = {name: sum(endings.values()) for name, endings in jobs.items()}
    merged = {name: endings.get(Kind.MERGED, 0) for name, endings in jobs.items()}
    return Turnout(asked, mean(dispatched), mean(merged))
