"""What the world asks of its caller, and the answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from edgefl.core import draws
from edgefl.core.event import TrainingJob
from edgefl.core.merging import MergeCost
from edgefl.core.plan import Plan
from edgefl.world.ledger import Totals

Correction: TypeAlias = Literal["move", "mix"]
"""How a stale upload is re-expressed; see ``edgefl.protocol.staleness``."""


def jobs_of(plan: Plan, rows: np.ndarray) -> tuple[TrainingJob, ...]:
    """Rows of ``JOB`` as jobs."""
    if not len(rows):
        return ()
    root, names = plan.scenario.seed, [prices.exchange for prices in plan.prices]
    columns = ("job", "client", "exchange", "version", "round", "nth", "steps")
    each = zip(*(rows[name].tolist() for name in columns), strict=True)
    return tuple(
        TrainingJob(
            number,
            client,
            names[exchange],
            version,
            round_,
            nth,
            draws.derive(root, "job", client=client, exchange=names[exchange], nth=nth),
            steps,
        )
        for number, client, exchange, version, round_, nth, steps in each
    )


@dataclass(frozen=True, kw_only=True)
class _Need:
    """What a merge and an evaluation have in common.

    Jobs are made when they are asked for: who only keeps time needs none.

    Attributes:
        version: that is made, or scored.
        round: from 0; -1 before the first, the number of rounds after the last.
        t_s: when, in virtual seconds.
        regular: False once the rounds are over, and for an evaluation out of turn; see ``Need``.
        late_rows: the jobs of ``completed``.
        ready_rows: gives the jobs of ``ready``, until the need is answered.
    """

    plan: Plan
    version: int
    round: int
    t_s: float
    regular: bool
    late_rows: np.ndarray
    ready_rows: Callable[[], np.ndarray]

    @cached_property
    def completed(self) -> tuple[TrainingJob, ...]:
        """Late jobs, not merged, whose clients keep the state that they wrote since the last need."""
        return jobs_of(self.plan, self.late_rows)

    @cached_property
    def ready(self) -> tuple[TrainingJob, ...]:
        """Jobs in flight, each from a version that exists; an engine may train them ahead."""
        return jobs_of(self.plan, self.ready_rows())


@dataclass(frozen=True, kw_only=True)
class Merge(_Need):
    """The server merges.

    Attributes:
        weights: for each of its jobs, its weight in averages.
        scales: for each of them, how much of its update counts: 1 is all of it.
        correction: how an upload that is stale, or scaled, is re-expressed.
        slowest: the client whose upload arrived last; -1 if nothing is merged.
        live_versions: the versions that jobs still need, and the new one.
        cost: what it cost the server; None where its work is free.
    """

    exchange: str
    merged_rows: Callable[[], np.ndarray]
    weights: Sequence[float]
    scales: Sequence[float]
    correction: Correction
    slowest: int
    live_versions: tuple[int, ...]
    cost: MergeCost | None = None

    @cached_property
    def rows(self) -> np.ndarray:
        """The jobs of ``merged``."""
        return self.merged_rows()

    @cached_property
    def merged(self) -> tuple[TrainingJob, ...]:
        """The jobs to merge, in the order of their clients."""
        return jobs_of(self.plan, self.rows)


@dataclass(frozen=True, kw_only=True)
class Evaluate(_Need):
    """The server asks for its current version's scores; the states of ``completed`` are due before.

    Attributes:
        totals_of: gives ``totals``, until the need is answered.
    """

    totals_of: Callable[[], Totals]

    @cached_property
    def totals(self) -> Totals:
        return self.totals_of()


Need: TypeAlias = Merge | Evaluate
"""Regular, or only because the run is ending.

A run with a larger ``server.until`` has the same needs, events and jobs up to the last regular one.
"""


@dataclass(frozen=True)
class Feedback:
    """The caller's answer.

    Attributes:
        jobs: for each job that was trained, by its number, its scalars, such as "loss".
        scores: an evaluation's accuracies by model.
    """

    jobs: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
