"""The learning side of a run: turns the world's jobs into training, merges and scores."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from edgefl.compute import loop
from edgefl.compute.evaluate import Personal, Scores, personal, score
from edgefl.compute.job import Outcome, Task
from edgefl.core import seeds
from edgefl.core.errors import RunError
from edgefl.core.event import Job
from edgefl.data import batches, normalised
from edgefl.planning.plan import Planned
from edgefl.protocol import Arrival, Batch, Ctx, Exchange, Phase, Predictor, Tree, leaves


@dataclass
class Learner:
    """Holds what is learned: server versions and client states.

    Attributes:
        planned: the plan and its learning side.
        versions: the server versions that a job in flight or the next one needs.
        states: client -> (job that wrote it, state).
        changed: the clients whose state is newer than the last checkpoint.
        host_s: wall seconds by what they went to.
    """

    planned: Planned
    versions: dict[int, Tree] = field(default_factory=dict)
    states: dict[int, tuple[int, Tree]] = field(default_factory=dict)
    changed: set[int] = field(default_factory=set)
    host_s: dict[str, float] = field(default_factory=lambda: {"train": 0.0, "merge": 0.0, "evaluate": 0.0})

    def __post_init__(self) -> None:
        learning = self.planned.learning
        seed = seeds.derive(self.planned.plan.scenario.seed, "init")
        with torch.no_grad(), loop.one_thread():
            # Every client of one model starts from the same weights, and model 0's are the server's.
            initial = [net.init(seed) for net in learning.nets]
            pairs = zip(learning.methods, initial, strict=True)
            self._initial_states = [method.client(weights) for method, weights in pairs]
            self.versions[0] = learning.methods[0].server(initial[0])
        self._exchanges = [
            {exchange.name: exchange for exchange in method.exchanges} for method in learning.methods
        ]
        self._counts = torch.from_numpy(learning.federation.class_counts).to(torch.float32)

    def exchange(self, name: str, client: int) -> Exchange:
        """An exchange as built on a client's model."""
        return self._exchanges[self._model(client)][name]

    def state(self, client: int) -> Tree | None:
        """A client's state: its last, or its initial one."""
        found = self.states.get(client)
        return found[1] if found else self._initial_states[self._model(client)]

    def _model(self, client: int) -> int:
        return int(self.planned.plan.clients.model[client])

    def merge(self, version: int, exchange: str, jobs: Sequence[Job]) -> dict[str, float]:
        """Trains the jobs, merges what they sent, and keeps the result as ``version``.

        Args:
            version: the version that is made.
            exchange: the exchange's name.
            jobs: in the order of their clients.

        Returns:
            The jobs' scalars, averaged by samples.

        Raises:
            RunError: training diverged.
        """
        start = time.perf_counter()
        arrivals: list[Arrival] = []
        scalars: list[Mapping[str, float]] = []
        for outcome in loop.outcomes(map(self.task, jobs)):
            _check_finite(outcome)
            ctx = self._ctx(outcome.job)
            arrivals.append(
                Arrival(self.planned.learning.up(outcome.upload), ctx, version - 1 - outcome.job.version)
            )
            scalars.append(outcome.scalars)
            if outcome.state is not None:
                self.states[outcome.job.client] = (outcome.job.id, outcome.state)
                self.changed.add(outcome.job.client)
        trained = time.perf_counter()
        merge = self._exchanges[0][exchange].merge
        with torch.no_grad(), loop.one_thread():
            self.versions[version] = merge(self.versions[version - 1], arrivals)
        self.host_s["train"] += trained - start
        self.host_s["merge"] += time.perf_counter() - trained
        weights = [arrival.ctx.samples for arrival in arrivals]
        return {
            name: float(np.average([one[name] for one in scalars], weights=weights))
            for name in (scalars[0] if scalars else {})
        }

    def forget(self, needed: set[int]) -> None:
        """Drops the versions that nobody needs."""
        for version in set(self.versions) - needed:
            del self.versions[version]

    def task(self, job: Job) -> Task:
        """A job with everything its fold needs."""
        exchange = self.exchange(job.exchange, job.client)
        payload = self.planned.learning.down(exchange.down(self.versions[job.version], job.client))
        federation, local = self.planned.learning.federation, self.planned.plan.scenario.local

        def of_phase(phase: Phase) -> Iterator[Batch]:
            augment = self.planned.learning.augment(phase)
            return batches(federation, job.client, phase, local.batch_size, job.seed, augment=augment)

        return Task(job, exchange.work, payload, self.state(job.client), self._ctx(job), of_phase)

    def _ctx(self, job: Job) -> Ctx:
        scenario = self.planned.plan.scenario
        optimizer, rounds = scenario.local.optimizer, scenario.server.rounds
        round_ = min(max(job.round, 0), rounds - 1)
        return Ctx(
            client=job.client,
            round=job.round,
            lr=optimizer.lr * optimizer.schedule.factor(round_, rounds),
            steps=job.steps,
            samples=int(self.planned.plan.clients.samples[job.client]),
            class_counts=self._counts[job.client],
        )

    def evaluate(self, version: int) -> tuple[Scores | None, Personal | None]:
        """Scores a version: the global model and the clients' own, as far as the scenario wants them."""
        start = time.perf_counter()
        wanted = self.planned.plan.scenario.evaluate.models
        federation, methods = self.planned.learning.federation, self.planned.learning.methods
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
                lambda client: client in self.states or self._initial_states[self._model(client)] is None,
                clients,
                federation.test_parts,
                scorer,
            )
        self.host_s["evaluate"] += time.perf_counter() - start
        return found, own

    def _personal(self, server: Tree, client: int) -> Predictor:
        method = self.planned.learning.methods[self._model(client)]
        return method.personal_model(server, self.state(client))


def _score(images: Any, labels: torch.Tensor, predictor: Predictor, indices: Any) -> Scores:
    return score(predictor, images, labels, indices)


def _check_finite(outcome: Outcome) -> None:
    broken = next(
        (f"{name} is {value}" for name, value in outcome.scalars.items() if not math.isfinite(value)), ""
    )
    # The loss of a step is taken before its update: the last update shows in what is sent and kept alone.
    if not broken and not all(
        torch.isfinite(leaf).all() for leaf in (*leaves(outcome.upload), *leaves(outcome.state or {}))
    ):
        broken = "weights are not finite"
    if broken:
        job = outcome.job
        raise RunError(
            f"training diverged: client {job.client}'s {broken} in round {job.round + 1}",
            where=f"exchange {job.exchange}",
            hint="lower local.optimizer.lr, or set local.optimizer.clip_norm",
        )
