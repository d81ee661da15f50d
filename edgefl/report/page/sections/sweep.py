"""Groups of runs as points among their settings and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgefl.report.averages import Compared


@dataclass(frozen=True)
class Sweep:
    """What groups differ in, and what became of them.

    Attributes:
        settings: by dotted key, each group's value; those in which groups differ.
        figures: by "accuracy", "bytes", "time" (s), "joules", each group's mean; None where it has none.
        pareto: by "bytes", "time", "joules": the groups that no other has beaten in it and in accuracy.
    """

    settings: Mapping[str, Sequence[Any]]
    figures: Mapping[str, Sequence[float | None]]
    pareto: Mapping[str, Sequence[int]]


def sweep(groups: Sequence[Compared]) -> Sweep:
    """The groups' settings and figures."""
    del groups
    return Sweep({}, {}, {})
