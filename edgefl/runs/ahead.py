"""Outcomes between training and merging."""

from __future__ import annotations

from collections.abc import Iterable

from edgefl.compute.job import Outcome
from edgefl.core.event import Job
from edgefl.protocol import Tree


class Stash:
    """What was trained and is not merged yet.

    An engine may train a job long before its merge. The state that it writes is the client's own only when
    the job is merged, or handed over as done: work that is lost on the way leaves the state as it was.
    """

    def __init__(self) -> None:
        self._done: dict[int, Outcome] = {}

    def __contains__(self, job: Job) -> bool:
        return job.id in self._done

    def put(self, outcome: Outcome) -> None:
        """Keeps a job's outcome until it is taken or forgotten."""
        self._done[outcome.job.id] = outcome

    def take(self, job: Job) -> Outcome:
        """A job's outcome, which leaves the stash."""
        return self._done.pop(job.id)

    def state(self, job: Job) -> Tree | None:
        """What the job's client's last job before it wrote, if that lies here."""
        before = [one for one in self._done.values() if one.job.client == job.client and one.job.id < job.id]
        written = [one for one in before if one.state is not None]
        return max(written, key=lambda one: one.job.id).state if written else None

    def forget_all_but(self, jobs: Iterable[Job]) -> None:
        """Drops the outcomes of all other jobs: they were lost, or nobody merges them."""
        alive = {job.id for job in jobs}
        for number in set(self._done) - alive:
            del self._done[number]
