"""The learning side of a run: turns the world's jobs into training, merges and scores."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from edgefl.compute.evaluate import Personal, Scores, personal, score
from edgefl.compute.job import Engine, Group, Outcome, Size
from edgefl.compute.remote import BuilderSpec
from edgefl.compute.threads import one_thread
from edgefl.core import seeds
from edgefl.core.errors import RunError
from edgefl.core.event import Job
from edgefl.data import normalised
from edgefl.planning.plan import Planned
from edgefl.protocol import Arrival, Predictor, Tree, tree_map
from edgefl.runs.ahead import Stash
from edgefl.runs.states import States
from edgefl.runs.workshop import Workshop, packed, rebuilt


class Learner:
    """Holds what is learned: server versions and client states.

    It is the bench that engines work at: it makes tasks of jobs.

    Attributes:
        planned: the plan and its learning side.
        workshop: what tasks are made of.
        versions: the server versions that a job in flight or the next one needs.
        states: the clients' own.
        engine: who trains; to be set before the first merge.
        host_s: wall seconds by what they went to.
    """

    engine: Engine

    def __init__(self, planned: Planned, states: States, device: torch.device | None = None) -> None:
        self.planned = planned
        self.workshop = Workshop.of(planned, device or torch.device("cpu"))
        self.states = states
        self.host_s = {"train": 0.0, "merge": 0.0, "evaluate": 0.0}
        self._stash = Stash(lambda job: self.workshop.exchange(job).stateful)
        learning = self.workshop.learning
        seed = seeds.derive(planned.plan.scenario.seed, "init")
        with torch.no_grad(), one_thread():
            # Every client of one model starts from the same weights, and model 0's are the server's.
            initial = [self._moved(net.init(seed)) for net in learning.nets]
            pairs = zip(learning.methods, initial, strict=True)
            self._initial_states = [method.client(weights) for method, weights in pairs]
            self.versions: dict[int, Tree] = {0: learning.methods[0].server(initial[0])}

    def _moved(self, tree: Tree) -> Tree:
        return tree_map(lambda leaf: leaf.to(self.workshop.device), tree)

    def state(self, client: int) -> Tree | None:
        """A client's state: its last, or its initial one."""
        if client in self.states:
            return self._moved(self.states.get(client))
        return self._initial_states[self.workshop.models[client]]

    def state_for(self, job: Job) -> Tree | None:
        """The state that a job begins with: what its client's last job before it left."""
        found = self._stash.state(job)
        return self.state(job.client) if found is None else found

    def sent_state(self, job: Job) -> Any:
        """The state that a job begins with, as it is sent to a worker: a file where it lies in one."""
        found = self._stash.state(job)
        return (self.states.file(job.client) or self.state(job.client)) if found is None else found

    def builder_spec(self) -> BuilderSpec:
        """How a worker builds its workshop."""
        settings, tensors = packed(self.planned)
        return BuilderSpec(rebuilt, settings, tensors)

    def size(self, job: Job) -> Size:
        """How large a job is."""
        prices = self.planned.plan.price(job.exchange)
        kind = (job.exchange, self.workshop.models[job.client], self.workshop.rate(job))
        return Size(kind, job.steps, self.workshop.samples[job.client], int(prices.peak_bytes[job.client]))

    def group(self, jobs: Sequence[Job]) -> Group:
        """The jobs with everything their folds need."""
        return self.workshop.group(jobs, self.versions, {job.client: self.state_for(job) for job in jobs})

    def merge(
        self,
        version: int,
        exchange: str,
        jobs: Sequence[Job],
        *,
        unmerged: Sequence[Job] = (),
        ready: Sequence[Job] = (),
    ) -> dict[str, float]:
        """Trains the jobs, merges what they sent, and keeps the result as ``version``.

        Args:
            version: the version that is made.
            exchange: the exchange's name.
            jobs: in the order of their clients.
            unmerged: jobs that are done but come too late; they are trained for their clients' states.
            ready: jobs in flight, which may be trained ahead.

        Returns:
            The jobs' scalars, averaged by samples.

        Raises:
            RunError: training diverged.
        """
        start = time.perf_counter()
        kept = [job for job in unmerged if self.workshop.exchange(job).stateful]
        wanted = sorted([*jobs, *kept], key=lambda job: job.id)
        self._train(wanted, ready)
        outcomes = {job.id: self._stash.take(job) for job in wanted}
        _check_finite(outcomes.values())
        for outcome in outcomes.values():
            if outcome.state is not None:
                self.states.put(outcome.job.client, outcome.job.id, tree_map(torch.Tensor.cpu, outcome.state))
        merged = [outcomes[job.id] for job in jobs]
        trained = time.perf_counter()
        method = self.workshop.learning.methods[0]
        merge = next(one.merge for one in method.exchanges if one.name == exchange)
        with torch.no_grad(), one_thread():
            arrivals = self._arrivals(merged, version)
            self.versions[version] = merge(self.versions[version - 1], arrivals)
        self.host_s["train"] += trained - start
        self.host_s["merge"] += time.perf_counter() - trained
        weights = [arrival.ctx.samples for arrival in arrivals]
        return {
            name: float(np.average([one.scalars[name] for one in merged], weights=weights))
            for name in (merged[0].scalars if merged else {})
        }

    def _train(self, wanted: Sequence[Job], ready: Sequence[Job]) -> None:
        """Sees to it that the wanted jobs' outcomes lie in the stash."""
        for wave in _waves(self._stash.missing(wanted, ready if self.engine.ahead else ())):
            for outcome in self.engine.outcomes(wave):
                self._stash.put(outcome)

    def _arrivals(self, outcomes: Sequence[Outcome], version: int) -> list[Arrival]:
        """What the server has of outcomes: what the codec leaves of what was sent."""
        up, jobs = self.workshop.learning.up, [outcome.job for outcome in outcomes]
        # The server knows what it sent, and so what each client began with.
        sent = [
            self.workshop.received(job, self.versions[job.version]) if up.needs_reference else None
            for job in jobs
        ]
        uploads = up.carried_all([outcome.upload for outcome in outcomes], sent)
        return [
            Arrival(upload, self.workshop.ctx(job), version - 1 - job.version)
            for upload, job in zip(uploads, jobs, strict=True)
        ]

    def forget(self, needed: set[int]) -> None:
        """Drops the versions that nobody needs."""
        for version in set(self.versions) - needed:
            del self.versions[version]

    def evaluate(self, version: int) -> tuple[Scores | None, Personal | None]:
        """Scores a version: the global model and the clients' own, as far as the scenario wants them."""
        start = time.perf_counter()
        wanted = self.planned.plan.scenario.evaluate.models
        federation, methods = self.workshop.learning.federation, self.workshop.learning.methods
        server = self.versions[version]
        images = partial(normalised, federation, split="test")
        scorer = partial(_score, images, federation.test_y)
        found = None
        global_model = methods[0].global_model
        if "global" in wanted and global_model is not None:
            found = scorer(global_model(server), federation.test)
        own = None
        if "personal" in wanted:
            clients = np.flatnonzero(self.planned.plan.clients.admitted).tolist()
            own = personal(
                lambda client: self._personal(server, client),
                lambda client: client in self.states or self._initial_state(client) is None,
                clients,
                federation.test_parts,
                scorer,
                shared=(server, *self._initial_states),
            )
        self.host_s["evaluate"] += time.perf_counter() - start
        return found, own

    def _initial_state(self, client: int) -> Tree | None:
        return self._initial_states[self.workshop.models[client]]

    def _personal(self, server: Tree, client: int) -> Predictor:
        method = self.workshop.learning.methods[self.workshop.models[client]]
        return method.personal_model(server, self.state(client))


def _waves(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    """The jobs in rounds of at most one a client, each client's in their order."""
    left = sorted(jobs, key=lambda job: job.id)
    while left:
        first: dict[int, Job] = {}
        for job in left:
            first.setdefault(job.client, job)
        yield list(first.values())
        left = [job for job in left if first[job.client] is not job]


def _score(images: Any, labels: torch.Tensor, predictor: Predictor, indices: Any) -> Scores:
    return score(predictor, images, labels, indices)


def _check_finite(outcomes: Iterable[Outcome]) -> None:
    for outcome in outcomes:
        numbers: Mapping[str, float] = outcome.scalars
        broken = next(
            (f"{name} is {value}" for name, value in numbers.items() if not math.isfinite(value)), ""
        )
        # The loss of a step is taken before its update: the last update shows in what is sent and kept alone.
        if not broken and not outcome.finite:
            broken = "weights are not finite"
        if broken:
            job = outcome.job
            raise RunError(
                f"training diverged: client {job.client}'s {broken} in round {job.round + 1}",
                where=f"exchange {job.exchange}",
                hint="lower local.optimizer.lr, or set local.optimizer.clip_norm",
            )
