"""What engines take and give back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from edgefl.core.event import Job
from edgefl.protocol import Batch, Ctx, Fold, Payload, Phase, Tree


@dataclass(frozen=True)
class Task:
    """A job with everything its fold needs.

    Attributes:
        job: who, what and from which version.
        fold: the work.
        payload: what the client received.
        state: the client's state; None where it keeps none.
        ctx: what the server knows.
        batches: a phase -> its batches, in order.
    """

    job: Job
    fold: Fold
    payload: Payload
    state: Tree | None
    ctx: Ctx
    batches: Callable[[Phase], Iterator[Batch]]


class Outcome(NamedTuple):
    """What a job came to.

    Attributes:
        job: the job.
        upload: what the client sends.
        state: its new state; None where the work writes none.
        scalars: means over the job's steps, such as "loss".
    """

    job: Job
    upload: Payload
    state: Tree | None
    scalars: Mapping[str, float]
