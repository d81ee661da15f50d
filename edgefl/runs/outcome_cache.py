"""Outcomes between training and merging."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from edgefl.compute.job import Outcome
from edgefl.core.event import TrainingJob
from edgefl.protocol import Tree

_INITIAL = -1


class OutcomeCache:
    """Outcomes that were trained and are not merged yet.

    An engine may train a job long before its merge. The state that it wrote becomes the client's only when
    the job is merged or completed; lost work leaves the state as it was. An outcome that started from a state
    which is not, or no longer, its client's is dropped, so training ahead gives what training at the merge
    would.
    """

    def __init__(self, writes: Callable[[TrainingJob], bool]) -> None:
        """``writes`` tells whether a job writes a state."""
        self._writes = writes
        self._done: dict[int, Outcome] = {}
        # By job, the job whose state it starts from: for the jobs at hand, and for cached outcomes.
        self._begins: dict[int, int] = {}
        self._began: dict[int, int] = {}
        # By client, the job that wrote its state.
        self._last: dict[int, int] = {}
        # By job, its outcome's number: a job that is trained again has another outcome.
        self._numbers: dict[int, int] = {}
        self._counted = 0

    def missing(
        self, due: Sequence[TrainingJob], ready: Sequence[TrainingJob], afresh: Container[int] = ()
    ) -> list[TrainingJob]:
        """The jobs to train for a merge; drops cached outcomes that are no longer valid.

        Args:
            due: the jobs that the merge needs, in order.
            ready: the jobs that may be trained ahead, if any job has to be trained.
            afresh: jobs, by number, whose outcomes are no longer valid.
        """
        self._begins, dropped = self._chained(due, ready), set[int]()
        for number in sorted(self._done):
            began = self._began[number]
            if number in afresh or began in dropped or self._begins.get(number) != began:
                dropped.add(number)
                del self._done[number], self._began[number], self._numbers[number]
        missing = [job for job in due if job.id not in self._done]
        if missing:
            missing += [job for job in ready if job.id in self._begins and job.id not in self._done]
        return missing

    def _chained(self, due: Sequence[TrainingJob], ready: Sequence[TrainingJob]) -> dict[int, int]:
        """Whose state each job starts from, if the ready jobs are merged one after another."""
        begins, last = {}, dict(self._last)
        for job in due:
            begins[job.id] = last.get(job.client, _INITIAL)
            if self._writes(job):
                last[job.client] = job.id
        for job in sorted(ready, key=lambda job: job.id):
            # A job that a later one has passed was lost, or its first state is not known yet.
            if job.id > last.get(job.client, _INITIAL):
                begins[job.id] = last.get(job.client, _INITIAL)
                if self._writes(job):
                    last[job.client] = job.id
        return begins

    def put(self, outcome: Outcome) -> None:
        """Keeps a job's outcome until it is taken or dropped."""
        self._done[outcome.job.id] = outcome
        self._began[outcome.job.id] = self._begins[outcome.job.id]
        self._numbers[outcome.job.id] = self.number()

    def take(self, job: TrainingJob) -> Outcome:
        """Takes a job's outcome out of the cache; the state that it wrote is its client's now."""
        del self._began[job.id], self._numbers[job.id]
        if self._writes(job):
            self._last[job.client] = job.id
        return self._done.pop(job.id)

    def number(self) -> int:
        """A number that no outcome has had."""
        self._counted += 1
        return self._counted

    @property
    def kept(self) -> Mapping[int, tuple[Outcome, int]]:
        """By number, an outcome and the job whose state it started from."""
        return {self._numbers[job]: (outcome, self._began[job]) for job, outcome in self._done.items()}

    def restore(self, kept: Mapping[int, tuple[Outcome, int]], last: Mapping[int, int], counted: int) -> None:
        """Takes over ``kept`` of a checkpoint, by client who wrote its state, and the last number."""
        self._done = {outcome.job.id: outcome for outcome, _ in kept.values()}
        self._began = {outcome.job.id: began for outcome, began in kept.values()}
        self._numbers = {outcome.job.id: number for number, (outcome, _) in kept.items()}
        self._last, self._counted = dict(last), counted

    def state(self, job: TrainingJob) -> Tree | None:
        """The state that a job starts from, if a cached job wrote it."""
        before = self._done.get(self._begins.get(job.id, _INITIAL))
        return None if before is None else before.state
