"""Builds tasks from jobs, in the driver and in every worker process."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from edgefl.compute.job import Group, Task
from edgefl.core.errors import RunError
from edgefl.core.event import TrainingJob
from edgefl.core.plan import Plan
from edgefl.core.scenario import LearningSpec
from edgefl.core.steps import limited, step_count
from edgefl.core.user_code import returned
from edgefl.data.batching import Together
from edgefl.data.federation import Federation
from edgefl.planning.learning import Learning, learn_from
from edgefl.planning.plan import Planned
from edgefl.protocol import Assignment, Batch, Ctx, Exchange, Fold, Payload, Phase, Tree
from edgefl.protocol.sample_losses import LOSS_RMS, measured
from edgefl.protocol.values import tensors


class Facts(NamedTuple):
    """What jobs depend on beside the learning part of the scenario.

    Attributes:
        rounds: how many there will be; None if another limit ends them.
        devices: the name of each client's device.
        measures: whether training measures the losses of single samples.
    """

    rounds: int | None
    devices: Sequence[str]
    measures: bool

    @classmethod
    def of(cls, plan: Plan) -> "Facts":
        clients, server = plan.clients, plan.scenario.server
        devices = [clients.devices[index] for index in clients.device]
        return cls(server.until.rounds, devices, LOSS_RMS in server.selector.READS)


@dataclass(frozen=True)
class TaskBuilder:
    """What tasks are built from, except server versions and client states.

    Attributes:
        learning: data, nets and methods, on the device that trains.
        device: of all tensors.
        class_counts: each client's samples of each class, (classes,) float32.
    """

    learning: Learning
    facts: Facts
    device: torch.device
    class_counts: Sequence[Tensor]
    samples: Sequence[int]

    @classmethod
    def of(cls, planned: Planned, device: torch.device) -> "TaskBuilder":
        """The builder of a planned run, with its data on the device that trains."""
        return cls.on(planned.learning, Facts.of(planned.plan), device)

    @classmethod
    def on(cls, learning: Learning, facts: Facts, device: torch.device) -> "TaskBuilder":
        federation = learning.federation.to(device)
        counts = torch.from_numpy(federation.class_counts)
        return cls(
            replace(learning, federation=federation),
            facts,
            device,
            counts.to(device, torch.float32).unbind(),
            counts.sum(dim=1).tolist(),
        )

    def model(self, client: int) -> int:
        """The index of a client's net and method."""
        return self._models[client]

    @cached_property
    def _models(self) -> list[int]:
        """By client, because every job is looked up several times."""
        return [self.learning.spec.model_of(client) for client in range(len(self.samples))]

    def exchange(self, job: TrainingJob) -> Exchange:
        """A job's exchange, as built on its client's model."""
        return self._exchanges[self.model(job.client)][job.exchange]

    @cached_property
    def _exchanges(self) -> list[dict[str, Exchange]]:
        """By model and name, because every job is looked up several times."""
        return [
            {exchange.name: self._observed(exchange) for exchange in method.exchanges}
            for method in self.learning.methods
        ]

    def _observed(self, exchange: Exchange) -> Exchange:
        return replace(exchange, work=measured(exchange.work)) if self.facts.measures else exchange

    def rate(self, job: TrainingJob) -> float:
        """A job's learning rate."""
        rounds = self.facts.rounds
        # After the rounds, the rate is that of the last one.
        round_ = max(job.round, 0) if rounds is None else min(max(job.round, 0), rounds - 1)
        if round_ not in self._rates:
            optimizer = self.learning.spec.local.optimizer
            factor = optimizer.schedule.factor(round_, rounds or 0)
            self._rates[round_] = optimizer.lr * returned(
                factor, (int, float), type(optimizer.schedule).factor, "a number", RunError
            )
        return self._rates[round_]

    @cached_property
    def _rates(self) -> dict[int, float]:
        """By round, because every job is looked up several times."""
        return {}

    def ctx(self, job: TrainingJob) -> Ctx:
        full = self._full_steps(job)
        ctx = Ctx(
            client=job.client,
            round=job.round,
            lr=self.rate(job),
            steps=self._reported_steps(job),
            samples=self.samples[job.client],
            class_counts=self.class_counts[job.client],
            work=job.steps / full if full else 1.0,
        )
        return self.exchange(job).context(Assignment(ctx, self.facts.rounds, self.facts.devices[job.client]))

    def _reported_steps(self, job: TrainingJob) -> int:
        """The steps of a job's phases that report."""
        phases, samples = self._fold(job).phases, self.samples[job.client]
        if all(phase.reports for phase in phases):
            return job.steps
        size = self.learning.spec.local.size
        return sum(step_count(samples, size, phase.passes) for phase in phases if phase.reports)

    def _full_steps(self, job: TrainingJob) -> int:
        """The steps of a job that does all phases of its exchange in full."""
        key = job.exchange, job.client
        if key not in self._lengths:
            samples, batch_size = self.samples[job.client], self.learning.spec.local.size
            phases = self.exchange(job).work.phases
            self._lengths[key] = sum(step_count(samples, batch_size, phase.passes) for phase in phases)
        return self._lengths[key]

    @cached_property
    def _lengths(self) -> dict[tuple[str, int], int]:
        """By exchange and client, because every job is looked up several times."""
        return {}

    def _fold(self, job: TrainingJob) -> Fold:
        """A job's work, as far as its steps go."""
        work = self.exchange(job).work
        if job.steps >= self._full_steps(job):
            return work
        passes = [phase.passes for phase in work.phases]
        lengths = limited(self.samples[job.client], self.learning.spec.local.size, passes, job.steps)
        pairs = zip(work.phases, lengths, strict=True)
        return replace(work, phases=tuple(replace(phase, passes=length) for phase, length in pairs))

    def received(self, job: TrainingJob, server: Tree) -> Payload:
        """What a job's client receives of a server version, as decoded."""
        down = self.exchange(job).down
        payload = tensors(down(server, job.client), down, "a payload (a dict)", RunError)
        return self.learning.down.received(payload)

    def task(self, job: TrainingJob, server: Tree, state: Tree | None) -> Task:
        federation = self.learning.federation
        payload = self.received(job, server)
        batch_size = self.learning.spec.local.size

        def of_phase(phase: Phase) -> Iterator[Batch]:
            augment = self.learning.augment(phase)
            alone = Together(federation, [job.client], [phase], batch_size, [job.seed], augment=augment)
            return alone.of_one()

        return Task(job, self._fold(job), payload, state, self.ctx(job), of_phase)

    def group(
        self, jobs: Sequence[TrainingJob], servers: Mapping[int, Tree], states: Mapping[int, Tree | None]
    ) -> Group:
        """Jobs of one exchange and model; ``servers`` are by version, ``states`` by client."""
        tasks = tuple(self.task(job, servers[job.version], states[job.client]) for job in jobs)

        def feed(place: int) -> Together:
            phases = [task.fold.phases[place] for task in tasks]
            return Together(
                self.learning.federation,
                [job.client for job in jobs],
                phases,
                self.learning.spec.local.size,
                [job.seed for job in jobs],
                augment=self.learning.augment(phases[0]),
            )

        return Group(tasks, feed)


def rebuilt(resolved: Mapping[str, Any], facts: Facts, federation: Federation) -> TaskBuilder:
    """The builder in another process, from a resolved ``LearningSpec`` and the data to train on."""
    spec, document = LearningSpec.of_resolved(resolved, "scenario")
    return TaskBuilder.on(learn_from(spec, document, federation), facts, torch.device("cpu"))
