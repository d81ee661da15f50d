"""Which group of runs is ahead, figure by figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgefl.report.averages import Compared


@dataclass(frozen=True)
class Verdict:
    """One figure of all groups.

    Attributes:
        label: its name.
        key: its place in a run of `edgefl compare --json`, dotted.
        unit: "s", "B", "J", "FLOP", "share" or empty.
        better: "higher" or "lower".
        texts: each group's, as a terminal shows it.
        means: each group's; None where it has none.
        winner: the place of the best group; None where there is none.
        close: whether another is within the deviations over seeds, or the bounds, of the best.
    """

    label: str
    key: str
    unit: str
    better: str
    texts: Sequence[str]
    means: Sequence[float | None]
    winner: int | None
    close: bool


def verdict(groups: Sequence[Compared]) -> list[Verdict]:
    """The figures by which groups are judged."""
    del groups
    return []
