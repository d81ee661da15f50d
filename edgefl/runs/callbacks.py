"""Callbacks that a group of runs makes as it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Progress:
    """How far a run is, and what it has cost.

    Costs are of the jobs that have ended, whether they were merged or not; jobs in flight are not counted.

    Attributes:
        name: the run's.
        version: the server's version, counted from 0: merges so far.
        round: the round of the last merge, from 0; -1 before the first round, the number of rounds after the
            last.
        rounds: how many there will be at most; None where the scenario does not limit them.
        t_s: virtual seconds since the start.
        jobs: how many jobs ended.
        down_bytes, up_bytes: their traffic.
        flops: their operations.
        client_s: client-seconds: the time spent receiving, working and sending, summed over jobs.
        joules: of the clients whose energy is known in full; None where there are none. Where nothing is
            trained, the energies of up to 1,000 jobs are still missing.
        wasted_bytes: the traffic of jobs that were not merged.
        wasted_share: of all traffic, from 0 to 1; None where there was none.
        accuracies: of the last evaluation by model, "global" and "personal".
        losses: on test data, of the last evaluation by model.
        loss: the mean training loss of the last merge that reports one; None where none has.
        left_s: the wall time left, in seconds, estimated from the progress so far towards the limit of
            ``server.until`` that will be met first; None while too little is known, or where the limit is an
            accuracy alone. A limit on accuracy may end the run earlier.
    """

    name: str
    version: int
    round: int
    rounds: int | None
    t_s: float
    jobs: int
    down_bytes: int
    up_bytes: int
    flops: int
    client_s: float
    joules: float | None
    wasted_bytes: int
    wasted_share: float | None
    accuracies: Mapping[str, float]
    losses: Mapping[str, float]
    loss: float | None
    left_s: float | None

    @property
    def bytes(self) -> int:
        """Traffic in both directions."""
        return self.down_bytes + self.up_bytes


class Callbacks:
    """Called as runs progress. Every method does nothing; a subclass overrides what it needs."""

    def planning(self, runs: int) -> None:
        """Planning of ``runs`` runs begins."""

    def planned(self, notes: Sequence[str]) -> None:
        """All runs are planned; ``notes`` say which clients were refused."""

    def started(self, name: str, rounds: int | None, folder: Path) -> None:
        """A run of so many rounds, if that is known, begins; its directory is ``folder``."""

    def engine(self, line: str) -> None:
        """The run's engine is ready; ``line`` says which it is, why, and how many processes train."""

    def merged(self, round_: int, t_s: float, loss: float | None) -> None:
        """The server merged uploads into a new version."""

    def evaluated(self, accuracies: dict[str, float]) -> None:
        """A version was evaluated; accuracies by model, "global" and "personal"."""

    def progressed(self, so_far: Progress) -> None:
        """Called after each ``merged`` and ``evaluated``, and when a run is over, with all that is known."""

    def ended(self, name: str, status: str, reason: str) -> None:
        """A run ended, "done" or "failed"; ``reason`` says why it failed."""


class Both(Callbacks):
    """Passes each call on to two others."""

    def __init__(self, first: Callbacks, second: Callbacks) -> None:
        for name in (name for name in vars(Callbacks) if not name.startswith("_")):
            setattr(self, name, partial(_both, getattr(first, name), getattr(second, name)))


def _both(first: Callable[..., None], second: Callable[..., None], *given: Any) -> None:
    first(*given)
    second(*given)
