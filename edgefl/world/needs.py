"""What the world asks of its caller, and what it is answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from edgefl.core.event import Job

Correction: TypeAlias = Literal["move", "mix"]
"""How a stale upload is re-expressed; see ``edgefl.protocol.staleness``."""


@dataclass(frozen=True)
class Merge:
    """The server wants to merge.

    Attributes:
        version: the version that this makes.
        exchange: the exchange's name.
        round: from 0; -1 before the first, the number of rounds after the last.
        t_s: when, in virtual seconds.
        merged: the jobs that go in, in the order of their clients.
        weights: for each of them, its weight in averages.
        scales: for each of them, how much of its update counts: 1 is all of it.
        correction: how an upload that is stale, or scaled, is re-expressed.
        slowest: the client whose upload arrived last; -1 where nothing is merged.
        completed: jobs that worked and are not merged, of exchanges that write client state.
        ready: jobs in flight, each from a version that exists; an engine may train them ahead.
        live_versions: the versions that jobs in flight still need, and the one that this makes.
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
    """The server wants its current version scored."""

    version: int
    round: int
    t_s: float


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
