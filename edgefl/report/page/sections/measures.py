"""Measures over rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgefl.store import Reader


@dataclass(frozen=True)
class MeasureSeries:
    """Of one run.

    Attributes:
        run: its place.
        measure: its name.
        figure: which of its figures.
        model: of which model.
        unit: "share", another, or empty.
        round: rounds, from 0.
        labels: classes, layers or others; empty for all together.
        values: (rounds, labels).
    """

    run: int
    measure: str
    figure: str
    model: str
    unit: str
    round: Sequence[int]
    labels: Sequence[str]
    values: Sequence[Sequence[float | None]]


def measures(reader: Reader, run: int) -> list[MeasureSeries]:
    """Those of a run, whose place is ``run``."""
    del reader, run
    return []
