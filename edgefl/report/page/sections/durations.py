"""How long jobs and rounds took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgefl.store import Reader


@dataclass(frozen=True)
class Durations:
    """Of one run.

    Attributes:
        run: its place.
        device: the clients' device; empty for all.
        what: "job", "receive", "work", "transmit" or "round".
        count: how many there are.
        seconds: quantiles in ascending order, at most 201.
        share: the share of all that took at most so long.
    """

    run: int
    device: str
    what: str
    count: int
    seconds: Sequence[float]
    share: Sequence[float]


def durations(reader: Reader, run: int) -> list[Durations]:
    """Those of a run, whose place is ``run``."""
    del reader, run
    return []
