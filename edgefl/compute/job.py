"""What engines take and give back."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple, Protocol

import torch

from edgefl.compute.threads import one_thread
from edgefl.core.event import Job
from edgefl.protocol import Batch, Ctx, Fold, Payload, Phase, Tree, leaves, rebuild


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


class Feed(Protocol):
    """One phase's batches of several clients, for those who take them together."""

    @property
    def sizes(self) -> Sequence[Sequence[int]]:
        """For each client, the batch sizes of its steps, in order."""
        ...

    def take(self, chosen: Sequence[int], step: Sequence[int]) -> Batch:
        """The next batch of each of the chosen clients, stacked along a new first dimension.

        Args:
            chosen: places in the group, ascending.
            step: how many steps each of them has taken in this phase; their next batches are of one size.
        """
        ...


@dataclass(frozen=True)
class Group:
    """Tasks that are done together: of one exchange and one model.

    Attributes:
        tasks: in the order of the group.
        feed: a phase -> the tasks' batches, for engines that stack them.
    """

    tasks: tuple[Task, ...]
    feed: Callable[[Phase], Feed]


def shortened(group: Group, limit: int) -> Group:
    """The group with no more than ``limit`` steps in each phase."""

    def batches(task: Task) -> Callable[[Phase], Iterator[Batch]]:
        return lambda phase: islice(task.batches(phase), limit)

    tasks = tuple(replace(task, batches=batches(task)) for task in group.tasks)
    return Group(tasks, lambda phase: _Short(group.feed(phase), limit))


class _Short:
    """The first steps of a feed."""

    def __init__(self, feed: Feed, limit: int) -> None:
        self.sizes = [sizes[:limit] for sizes in feed.sizes]
        self.take = feed.take


class Outcome(NamedTuple):
    """What a job came to.

    Attributes:
        job: the job.
        upload: what the client sends.
        state: its new state; None where the work writes none.
        scalars: means over the job's steps, such as "loss".
        finite: whether all numbers in upload and state are.
    """

    job: Job
    upload: Payload
    state: Tree | None
    scalars: Mapping[str, float]
    finite: bool = True


@dataclass(frozen=True)
class Bundle:
    """What some jobs of a group came to; the leaves have a first dimension that counts the jobs.

    Attributes:
        jobs: in the order of that dimension.
        upload: what the clients send.
        state: their new states; None where the work writes none.
        scalars: means over each job's steps, one number a job.
    """

    jobs: tuple[Job, ...]
    upload: Payload
    state: Tree | None
    scalars: Mapping[str, Sequence[float]]

    def outcomes(self) -> Iterator[Outcome]:
        """One outcome a job; their tensors are views of the bundle's."""
        count = len(self.jobs)
        uploads, states = _unstacked(self.upload, count), _unstacked(self.state, count)
        with one_thread():
            # Threads that wait for each other on a busy machine would take a hundred times as long.
            finite = self._finite()
        for place, (job, upload, state) in enumerate(zip(self.jobs, uploads, states, strict=True)):
            scalars = {name: values[place] for name, values in self.scalars.items()}
            yield Outcome(job, upload, state, scalars, finite[place])

    def _finite(self) -> list[bool]:
        """For each job, whether all its numbers are finite."""
        numbers = (*leaves(self.upload), *leaves(self.state or {}))
        tensors = [leaf for leaf in numbers if leaf.numel() and leaf.is_floating_point()]
        # A sum with a number in it that is not finite is not finite, and takes a fraction of a norm's time.
        if all(math.isfinite(leaf.sum()) for leaf in tensors):
            return [True] * len(self.jobs)
        each = [torch.isfinite(leaf.reshape(len(self.jobs), -1)).all(dim=1).cpu() for leaf in tensors]
        return torch.stack(each).all(dim=0).tolist()


def _unstacked(tree: Tree | None, count: int) -> Iterator[Any]:
    if tree is None:
        return iter([None] * count)
    rows = [leaf.unbind() for leaf in leaves(tree)]
    return (rebuild(tree, (row[place] for row in rows)) for place in range(count))


class Size(NamedTuple):
    """How large a job is, and which jobs it can be stacked with.

    Attributes:
        kind: jobs of equal kinds have one fold and one learning rate.
        steps: optimizer steps over all phases.
        samples: of the client.
        peak_bytes: what training it takes, by the traced cost.
    """

    kind: Hashable
    steps: int
    samples: int
    peak_bytes: int


class Bench(Protocol):
    """The run, as an engine sees it: it makes tasks of jobs."""

    def size(self, job: Job) -> Size:
        """How large a job is."""
        ...

    def group(self, jobs: Sequence[Job]) -> Group:
        """The jobs with everything their folds need; they are of one kind."""
        ...


class Trainer(Protocol):
    """How one process trains."""

    def units(self, jobs: Sequence[Job], size: Callable[[Job], Size]) -> list[tuple[Job, ...]]:
        """Cuts jobs into units that are trained one after another, the same on every machine."""
        ...

    def work(self, group: Group) -> list[Bundle]:
        """Trains one unit."""
        ...


class Engine(Protocol):
    """Who trains.

    Attributes:
        ahead: whether it gains from jobs beyond those that are wanted now.
    """

    ahead: bool

    def outcomes(self, jobs: Sequence[Job], *, limit: int | None = None) -> Iterator[Outcome]:
        """Trains jobs, no two of one client.

        Args:
            jobs: the jobs.
            limit: the most steps to take in each phase, to measure speed; None is all.

        Yields:
            One outcome a job, in any order.
        """
        ...

    def close(self) -> None:
        """Gives back what the engine holds."""
        ...
