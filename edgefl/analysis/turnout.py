"""How many of the clients that a round asks for took part in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from edgefl.analysis.run import Run
from edgefl.analysis.sums import jobs_by_ending
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


def turnout(run: Run) -> Turnout | None:
    """That of a run; None of a policy that asks for no rounds, and before the first one is over."""
    asked, rounds = run.reader.meta.get("participants"), run.reader.meta.get("rounds")
    if not asked or not rounds:
        return None
    every = {row["exchange"]: row["every"] for row in run.exchanges if row["at"] == "round"}
    jobs = jobs_by_ending(run)

    def mean(count: Callable[[Mapping[str, int]], int]) -> float:
        return max((count(jobs[name]) * each / rounds for name, each in every.items()), default=0.0)

    return Turnout(asked, mean(lambda each: sum(each.values())), mean(lambda each: each.get(Kind.MERGED, 0)))
