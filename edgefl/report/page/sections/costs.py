"""What groups of runs spent, by part of the payload, by phase and by ending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgefl.report.averages import Compared


@dataclass(frozen=True)
class Ending:
    """Means over a group's runs of what jobs with one ending cost; see ``usage.Spent``."""

    jobs: float
    bytes: float
    flops: float
    client_s: float
    joules: float | None


@dataclass(frozen=True)
class Costs:
    """Means over a group's runs.

    Attributes:
        group: its place.
        bytes_by_part: "down" and "up" by part of the payload.
        joules_by_phase: see ``Summary``.
        waiting_joules: see ``Summary``; None if unknown.
        endings: by "merged", "late", "lost" and "cut".
    """

    group: int
    bytes_by_part: Mapping[str, Mapping[str, float]]
    joules_by_phase: Mapping[str, float]
    waiting_joules: float | None
    endings: Mapping[str, Ending]


def costs(groups: Sequence[Compared]) -> list[Costs]:
    """The costs of each group."""
    del groups
    return []
