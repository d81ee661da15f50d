"""What engines work with: tasks, built from jobs, server versions and client states."""

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial

import torch

from edgefl.compute.job import Group, Outcome, Setup, Size, Trainer
from edgefl.compute.process import one_thread
from edgefl.core import draws
from edgefl.core.errors import RunError
from edgefl.core.event import TrainingJob
from edgefl.core.user_code import returned
from edgefl.planning.plan import Planned
from edgefl.protocol import Predictor, Tree, parts_of, tree_map
from edgefl.runs.states import States
from edgefl.runs.task_builder import TaskBuilder, rebuilt

_INITIAL = -1
_STATE = "a client state (a dict) or None"


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


class Context:
    """Holds server versions and client states, and builds tasks from them.

    Attributes:
        versions: the server versions that jobs in flight or the next one need.
        outcomes: trained and not merged yet.
    """

    def __init__(self, planned: Planned, states: States, device: torch.device | None = None) -> None:
        self.planned = planned
        self.builder = TaskBuilder.of(planned, device or torch.device("cpu"))
        self.states = states
        self.outcomes = OutcomeCache(lambda job: self.builder.exchange(job).stateful)
        learning = self.builder.learning
        seed = draws.derive(planned.plan.scenario.seed, "init")
        with torch.no_grad(), one_thread():
            # Every client of one model starts from the same weights, and model 0's are the server's.
            initial = [self.moved(net.init(seed)) for net in learning.nets]
            pairs = zip(learning.methods, initial, strict=True)
            self.initial_states = [
                returned(method.client(weights), (dict, type(None)), method.client, _STATE, RunError)
                for method, weights in pairs
            ]
            self.versions: dict[int, Tree] = {0: learning.methods[0].initial(initial[0])}

    def moved(self, tree: Tree) -> Tree:
        """A tree of tensors on the device that trains."""
        return tree_map(lambda leaf: leaf.to(self.builder.device), tree)

    def size(self, job: TrainingJob) -> Size:
        plan = self.planned.plan
        peak_bytes = plan.price(job.exchange).demand.peak_bytes[plan.clients.kind[job.client]]
        kind = (job.exchange, self.builder.model(job.client), self.builder.rate(job))
        return Size(kind, job.steps, self.builder.samples[job.client], int(peak_bytes))

    def group(self, jobs: Sequence[TrainingJob]) -> Group:
        return self.builder.group(jobs, self.versions, {job.client: self.begins(job) for job in jobs})

    def state(self, client: int) -> Tree | None:
        """A client's latest state."""
        if client in self.states:
            return self.moved(self.states.get(client))
        return self.initial_state(client)

    def initial_state(self, client: int) -> Tree | None:
        learning, place = self.builder.learning, self.builder.model(client)
        if learning.spec.local.first_weights != "own":
            return self.initial_states[place]
        with torch.no_grad(), one_thread():
            seed = learning.spec.local.first_seed(learning.spec.seed, client)
            begun = learning.methods[place].client
            weights = self.moved(learning.nets[place].init(seed))
            return returned(begun(weights), (dict, type(None)), begun, _STATE, RunError)

    def begins(self, job: TrainingJob) -> Tree | None:
        """The state that a job starts from: the one that its client's previous job wrote."""
        cached = self.outcomes.state(job)
        return self.state(job.client) if cached is None else cached

    def unconfirmed(self, outcome: Outcome) -> Outcome:
        """The outcome of work that came too late, its state's ``Exchange.confirmed`` parts as they were."""
        parts = self.builder.exchange(outcome.job).confirmed
        kept = parts_of(self.begins(outcome.job), parts)
        return outcome._replace(state={**(outcome.state or {}), **kept})

    def setup(self, trainer: Trainer) -> Setup:
        learning = self.planned.learning
        build = partial(rebuilt, learning.spec.resolved(), self.builder.facts)
        # The dataset's own files may be on another machine.
        return Setup(build, learning.federation.for_training(), trainer)

    def personal_model(self, server: Tree, client: int) -> Predictor:
        method = self.builder.learning.methods[self.builder.model(client)]
        found = method.personal_model(server, self.state(client))
        return returned(found, Predictor, method.personal_model, "a Predictor", RunError)
