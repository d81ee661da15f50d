"""Outcomes between training and merging."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edgefl.compute.job import Outcome
from edgefl.core.event import Job
from edgefl.protocol import Tree

_INITIAL = -1


class OutcomeCache:
    """What was trained and is not merged yet.

    An engine may train a job long before its merge. The state that it writes is the client's own only when
    the job is merged, or handed over as done: work that is lost on the way leaves the state as it was. An
    outcome that began with a state which never became its client's own, or is no more, is dropped, so that
    training ahead comes to what training at the merge would have.
    """

    def __init__(self, writes: Callable[[Job], bool]) -> None:
        """Takes what tells whether a job writes a state."""
        self._writes = writes
        self._done: dict[int, Outcome] = {}
        # By job, the job whose state it begins with: of those at hand, and of those that are cached.
        self._begins: dict[int, int] = {}
        self._began: dict[int, int] = {}
        # By client, the job whose state is its own.
        self._last: dict[int, int] = {}

    def missing(self, wanted: Sequence[Job], ready: Sequence[Job]) -> list[Job]:
        """The jobs that are to be trained for a merge; what is cached and is of no use any more is dropped.

        Args:
            wanted: what the merge takes, in the order of the jobs.
            ready: what may be trained ahead, if anything is to be trained at all.
        """
        self._begins, dropped = self._chained(wanted, ready), set[int]()
        for number in sorted(self._done):
            began = self._began[number]
            if began in dropped or self._begins.get(number) != began:
                dropped.add(number)
                del self._done[number], self._began[number]
        found = [job for job in wanted if job.id not in self._done]
        if found:
            found += [job for job in ready if job.id in self._begins and job.id not in self._done]
        return found

    def _chained(self, wanted: Sequence[Job], ready: Sequence[Job]) -> dict[int, int]:
        """Whose state each job begins with, if those that are ready are merged one after another."""
        found, last = {}, dict(self._last)
        for job in wanted:
            found[job.id] = last.get(job.client, _INITIAL)
            if self._writes(job):
                last[job.client] = job.id
        for job in sorted(ready, key=lambda job: job.id):
            # One that a later job has passed was lost, or begins with a state that nobody knows yet.
            if job.id > last.get(job.client, _INITIAL):
                found[job.id] = last.get(job.client, _INITIAL)
                if self._writes(job):
                    last[job.client] = job.id
        return found

    def put(self, outcome: Outcome) -> None:
        """Keeps a job's outcome until it is taken or dropped."""
        self._done[outcome.job.id] = outcome
        self._began[outcome.job.id] = self._begins[outcome.job.id]

    def take(self, job: Job) -> Outcome:
        """A job's outcome, which leaves the cache; the state that it wrote is its client's own now."""
        del self._began[job.id]
        if self._writes(job):
            self._last[job.client] = job.id
        return self._done.pop(job.id)

    def state(self, job: Job) -> Tree | None:
        """The state that a job begins with, if it is that of another job that is cached."""
        before = self._done.get(self._begins.get(job.id, _INITIAL))
        return None if before is None else before.state
