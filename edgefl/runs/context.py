"""What engines work with: tasks, built from jobs, server versions and client states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from edgefl.compute.job import Group, Outcome, Size, Trainer
from edgefl.compute.parallel import Setup
from edgefl.compute.threads import one_thread
from edgefl.core import seeds
from edgefl.core.errors import RunError
from edgefl.core.event import TrainingJob
from edgefl.core.user_code import returned
from edgefl.planning.plan import Planned
from edgefl.protocol import Predictor, Tree, parts_of, tree_map
from edgefl.runs.outcome_cache import OutcomeCache
from edgefl.runs.states import States
from edgefl.runs.task_builder import TaskBuilder, packed, rebuilt

_STATE = "a client state (a dict) or None"


class Context:
    """Holds server versions and client states, and builds tasks from them.

    Attributes:
        planned: the plan and its learning side.
        builder: builds tasks.
        versions: the server versions that jobs in flight or the next one need.
        states: the clients' states.
        outcomes: trained and not merged yet.
    """

    def __init__(self, planned: Planned, states: States, device: torch.device | None = None) -> None:
        self.planned = planned
        self.builder = TaskBuilder.of(planned, device or torch.device("cpu"))
        self.states = states
        self.outcomes = OutcomeCache(lambda job: self.builder.exchange(job).stateful)
        learning = self.builder.learning
        seed = seeds.derive(planned.plan.scenario.seed, "init")
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
        """How large a job is."""
        plan = self.planned.plan
        peak_bytes = plan.price(job.exchange).peak_bytes[plan.clients.kind[job.client]]
        kind = (job.exchange, self.builder.model(job.client), self.builder.rate(job))
        return Size(kind, job.steps, self.builder.samples[job.client], int(peak_bytes))

    def group(self, jobs: Sequence[TrainingJob]) -> Group:
        """Jobs with everything that their folds need."""
        return self.builder.group(jobs, self.versions, {job.client: self._state_for(job) for job in jobs})

    def state(self, client: int) -> Tree | None:
        """A client's latest state."""
        if client in self.states:
            return self.moved(self.states.get(client))
        return self.initial_state(client)

    def initial_state(self, client: int) -> Tree | None:
        """The state that a client starts the run with."""
        learning, place = self.builder.learning, self.builder.model(client)
        if learning.spec.local.first_weights != "own":
            return self.initial_states[place]
        with torch.no_grad(), one_thread():
            seed = learning.spec.local.first_seed(learning.spec.seed, client)
            begun = learning.methods[place].client
            weights = self.moved(learning.nets[place].init(seed))
            return returned(begun(weights), (dict, type(None)), begun, _STATE, RunError)

    def _state_for(self, job: TrainingJob) -> Tree | None:
        """The state that a job starts from: the one that its client's previous job wrote."""
        cached = self.outcomes.state(job)
        return self.state(job.client) if cached is None else cached

    def unconfirmed(self, outcome: Outcome) -> Outcome:
        """The outcome of work that came too late, its state's ``Exchange.confirmed`` parts as they were."""
        parts = self.builder.exchange(outcome.job).confirmed
        kept = parts_of(self._state_for(outcome.job), parts)
        return outcome._replace(state={**(outcome.state or {}), **kept})

    def sent_state(self, job: TrainingJob) -> Any:
        """The state that a job starts from, for a worker: as a file if there is one."""
        cached = self.outcomes.state(job)
        return (self.states.file(job.client) or self.state(job.client)) if cached is None else cached

    def setup(self, trainer: Trainer) -> Setup:
        """What workers need."""
        return Setup(rebuilt, *packed(self.planned), trainer)

    def personal_model(self, server: Tree, client: int) -> Predictor:
        """A client's own model under a server state."""
        method = self.builder.learning.methods[self.builder.model(client)]
        found = method.personal_model(server, self.state(client))
        return returned(found, Predictor, method.personal_model, "a Predictor", RunError)
