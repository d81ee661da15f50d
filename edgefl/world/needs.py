"""What the world asks of its caller, and the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from edgefl.core.event import Job

Correction: TypeAlias = Literal["move", "mix"]
"""How a stale upload is re-expressed; see ``edgefl.protocol.staleness``."""


@dataclass(frozen=True)
class Merge:
    """The server merges.

    Attributes:
        version: the new version.
        exchange: its name.
        round: from 0; -1 before the first, the number of rounds after the last.
        t_s: when, in virtual seconds.
        merged: the jobs to merge, in the order of their clients.
        weights: for each of them, its weight in averages.
        scales: for each of them, how much of its update counts: 1 is all of it.
        correction: how an upload that is stale, or scaled, is re-expressed.
        slowest: the client whose upload arrived last; -1 if nothing is merged.
        completed: late jobs, not merged, whose clients keep the state that they wrote.
        ready: jobs in flight, each from a version that exists; an engine may train them ahead.
        live_versions: the versions that jobs still need, and the new one.
    """

    version: int
    exchange: str
    round: int
    t_s: float
    merged: tuple[Job, ...]
    weights: tuple[float, ...]
    scales: tuple[float, ...]
    correction: Correction
    slowest: int
    completed: tuple[Job, ...]
    ready: tuple[Job, ...]
    live_versions: tuple[int, ...]


@dataclass(frozen=True)
class Evaluate:
    """The server asks for its current version's scores.

    Attributes:
        version, round, t_s: as of a merge.
        completed: jobs that worked late since the last merge; their clients' states are due before scoring.
        ready: as of a merge.
    """

    version: int
    round: int
    t_s: float
    completed: tuple[Job, ...] = ()
    ready: tuple[Job, ...] = ()


Need: TypeAlias = Merge | Evaluate


@dataclass(frozen=True)
class Feedback:
    """The caller's answer.

    Attributes:
        jobs: for each job that was trained, by its number, its scalars, such as "loss".
        scores: an evaluation's accuracies by model.
    """

    jobs: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
