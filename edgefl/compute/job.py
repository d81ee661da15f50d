"""What engines take and return."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

import torch

from edgefl.core.event import TrainingJob
from edgefl.data.batching import Together
from edgefl.data.federation import Federation
from edgefl.protocol import Batch, Ctx, Fold, Payload, Phase, Tree, leaves

Unit: TypeAlias = tuple[TrainingJob, ...]
"""Jobs that are trained at once."""


@dataclass(frozen=True)
class Task:
    """A job with everything its fold needs, whose phases are no longer than the job's steps allow."""

    job: TrainingJob
    fold: Fold
    payload: Payload
    state: Tree | None
    ctx: Ctx
    batches: Callable[[Phase], Iterator[Batch]]


@dataclass(frozen=True)
class Group:
    """Tasks of one exchange and one model; ``feed`` stacks their batches, by a phase's place in the fold."""

    tasks: tuple[Task, ...]
    feed: Callable[[int], Together]


class Outcome(NamedTuple):
    """The result of a job; ``scalars`` are means over its steps, such as "loss", and none without steps."""

    job: TrainingJob
    upload: Payload
    state: Tree | None  # the client's new one; None where the work writes none
    scalars: Mapping[str, float]
    finite: bool = True  # whether all numbers in upload and state are


def all_finite(*trees: Tree | None) -> bool:
    """Whether all numbers in some trees of tensors are finite."""
    numbers = [leaf for tree in trees if tree is not None for leaf in leaves(tree)]
    tensors = [leaf for leaf in numbers if leaf.numel() and leaf.is_floating_point()]
    # The sum of numbers that are not all finite is not finite either, and takes a fraction of a norm's time.
    return all(math.isfinite(leaf.sum()) or bool(torch.isfinite(leaf).all()) for leaf in tensors)


class Size(NamedTuple):
    """How large a job is; jobs of one ``kind`` have one fold and one learning rate, and can be stacked."""

    kind: Hashable
    steps: int
    samples: int
    peak_bytes: int


class Trainer(Protocol):
    """How one process trains."""

    def units(self, jobs: Sequence[TrainingJob], size: Callable[[TrainingJob], Size]) -> list[Unit]:
        """Divides jobs into units, the same on every machine."""

    def work(self, group: Group) -> Iterable[Outcome]:
        """Trains one unit; one outcome a job, in any order."""


class Setup(NamedTuple):
    """What a worker needs for all units; can be pickled."""

    # Of the federation, without test images; its ``group`` takes jobs, server versions and clients' states.
    build: Callable[[Federation], Any]
    federation: Federation
    trainer: Trainer


class EngineContext(Protocol):
    """The run as an engine sees it, with the server versions that are needed now."""

    versions: dict[int, Tree]

    def size(self, job: TrainingJob) -> Size: ...

    def group(self, jobs: Sequence[TrainingJob]) -> Group: ...

    def begins(self, job: TrainingJob) -> Tree | None: ...

    def setup(self, trainer: Trainer) -> Setup: ...


class Engine(ABC):
    """Who trains; ``ahead`` if it gains from jobs beyond those that the next merge takes."""

    ahead = True

    @abstractmethod
    def outcomes(self, jobs: Sequence[TrainingJob]) -> Iterator[Outcome]:
        """Trains jobs, no two of one client; one outcome a job, in any order."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Releases what the engine holds."""


@dataclass(eq=False)
class Local(Engine):
    context: EngineContext
    trainer: Trainer
    ahead: bool = field(kw_only=True)

    def outcomes(self, jobs: Sequence[TrainingJob]) -> Iterator[Outcome]:
        for unit in self.trainer.units(jobs, self.context.size):
            yield from self.trainer.work(self.context.group(unit))
