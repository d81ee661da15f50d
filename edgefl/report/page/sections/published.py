"""Figures that papers claim, beside those of the runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgefl.store import Reader


@dataclass(frozen=True)
class Claim:
    """A claim of a run's scenario.

    Attributes:
        what: the claim in words.
        source: where it is published.
        published: the figure.
        ours: the runs' own; None where no pair of runs has it.
        unit: of both.
        why: why there is none of ours; empty otherwise.
    """

    what: str
    source: str
    published: float
    ours: float | None
    unit: str
    why: str


def published(readers: Sequence[Reader]) -> list[Claim]:
    """The claims of the runs' scenarios."""
    del readers
    return []
