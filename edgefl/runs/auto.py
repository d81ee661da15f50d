"""Chooses the engine of a run.

There are two families of engines, whose results differ in their last bits: those that train one client at
a time (``loop``, and ``processes`` of it) and those that stack clients (``vmapped``, and ``processes`` of it
with groups of the same size). The family follows from the plan and the kind of processor alone: from how much
its kernels move, how many a step has, and how many clients share a step. Neither the load of the machine, the
number of workers nor an earlier run can change a bit of the result.

How many processes train changes no bit, and follows from the cores of this machine and the expected time.

The constants are measured: ``benchmarks/auto.py`` compares what they choose with what is fastest.
"""

import math
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from edgefl.compute.vmapped import Vmapped
from edgefl.core import catalogue, draws
from edgefl.core.errors import EdgeflError, in_one_line
from edgefl.core.event import TrainingJob
from edgefl.core.host import cores
from edgefl.core.plan import Prices
from edgefl.core.units import show_bytes
from edgefl.data.batching import Together
from edgefl.planning.pricing import phase_steps
from edgefl.runs.context import Context

# Kernels that move more on average gain nothing from being stacked.
SMALL_BYTES = 128e3
# A stacked step costs as much as this share of a client's own steps, and as so many kernels more.
STACKING, STACKING_KERNELS = 1.6, 40.0
# On a GPU starting a kernel takes longer than a small one works: two clients in a step are enough (assumed).
TOGETHER_ON_GPU = 2.0
# What a step takes on one core of an AMD EPYC: seconds a kernel, bytes and operations a second.
KERNEL_S, BYTES_PER_S, FLOPS_PER_S = 10e-6, 6e9, 100e9
# What workers have to save before they are worth starting: each imports torch first. Measured at W1:
# ``benchmarks/results/workers-2026-11-28.txt``.
START_S = 3.0
# A run that another limit ends is taken to be as long.
_ROUNDS = 100
# More jobs say no more about a round.
_MOST_JOBS = 640


@dataclass(frozen=True)
class Shape:
    """The training of a run's heaviest exchange, as its plan describes it, and how it is done fastest.

    Attributes:
        kernels: of a step, on average.
        kernel_bytes: what a kernel moves, on average.
        together: how many clients share a stacked step, on average.
        units: in how many groups a round's jobs are stacked.
        jobs: of a round.
        expected_s: seconds in which one core would train all rounds of all exchanges, one client at a time.
    """

    kernels: float
    kernel_bytes: float
    together: float
    units: int
    jobs: int
    expected_s: float

    @property
    def small(self) -> bool:
        """Whether the kernels are small enough to be stacked on a CPU."""
        return self.kernel_bytes <= SMALL_BYTES

    @property
    def stacked(self) -> float:
        """The time of stacked training on a CPU, as a share of that of one client after another."""
        alone = self.together * self.kernels
        return (STACKING * self.kernels + STACKING_KERNELS) / alone if alone else math.inf

    def stacks(self, *, gpu: bool) -> bool:
        """Whether stacking is expected to be the faster family."""
        return self.together >= TOGETHER_ON_GPU if gpu else self.small and self.stacked <= 1

    def workers(self, family: str) -> int:
        """How many processes train fastest, the time in which they start included."""
        units, alone_s = self.jobs, self.expected_s
        if family == "vmapped":
            units, alone_s = self.units, alone_s * self.stacked
        most = min(cores(), units)
        return most if most > 1 and alone_s - alone_s / most > START_S else 1


@dataclass(frozen=True)
class EngineChoice:
    """An engine, as its name and parameters, the reason for it in a phrase, and what it was derived from."""

    engine: dict[str, Any]
    why: str
    shape: Shape

    def facts(self) -> dict[str, Any]:
        """What ``host.json`` says of it."""
        return {"why": self.why, **asdict(self.shape)}


def choose(context: Context, params: Any) -> EngineChoice:
    """The engine for a run of which nothing was learned yet; ``params`` are those of engine "auto"."""
    shape = shape_of(context)
    gpu = context.builder.device.type != "cpu"
    family, why = _family(context, shape, gpu=gpu)
    workers = params.workers or (1 if gpu else shape.workers(family))
    named: dict[str, Any] = {"name": family, "device": params.device}
    if workers > 1:
        named = {"name": "processes", "workers": workers, "inner": family}
    return EngineChoice(named | {"state_memory": params.state_memory}, why, shape)


def _family(context: Context, shape: Shape, *, gpu: bool) -> tuple[str, str]:
    """The family, "loop" or "vmapped", and the reason for it."""
    moved = show_bytes(shape.kernel_bytes)
    share = f"{shape.together:.1f} clients share a step of {shape.kernels:.0f} kernels"
    if not shape.stacks(gpu=gpu):
        large = not gpu and not shape.small
        return "loop", f"kernels of {moved} are too large to stack" if large else f"only {share}"
    refusal = _not_stackable(context)
    if refusal:
        return "loop", f"its clients cannot be stacked: {refusal}"
    return "vmapped", share if gpu else f"{share}, {moved} each"


def _not_stackable(context: Context) -> str:
    """Why two clients cannot take two steps together, such as an operator without a rule for ``vmap``."""
    trainer, cohort = _stacker(), cohort_of(context)

    def feed(place: int) -> Together:
        found = group.feed(place)
        found.sizes = [sizes[:2] for sizes in found.sizes]
        return found

    try:
        group = context.group(trainer.units(cohort, context.size)[0][:2])
        trainer.work(replace(group, feed=feed))
    except Exception as error:  # noqa: BLE001 - a user's method may do what vmap cannot
        return error.what if isinstance(error, EdgeflError) else in_one_line(error)
    return ""


def _stacker() -> Vmapped:
    """The trainer of the engine vmapped, as it is by default."""
    params = catalogue.load("engines", "vmapped").Params()
    return Vmapped(params.group, int(params.memory))


class _Work:
    """What the steps of jobs cost, by the traces of their exchanges."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[tuple[str, int, int, int], tuple[int, int, float]] = {}

    def steps(self, job: TrainingJob) -> list[tuple[int, int, int]]:
        """(phase, batch size, how many steps of it) of a job."""
        builder = self._context.builder
        exchange, samples = builder.exchange(job), builder.samples[job.client]
        phases = phase_steps(exchange, samples, builder.learning.spec.local.size, job.steps)
        return [(place, size, count) for place, each in enumerate(phases) for size, count in each.items()]

    def step(self, job: TrainingJob, phase: int, size: int) -> tuple[int, int, float]:
        """A step's kernels, the bytes that they move, and the seconds that it is expected to take."""
        model = self._context.builder.model(job.client)
        key = job.exchange, model, phase, size
        if key not in self._known:
            trace = self._context.planned.plan.price(job.exchange).traces[model]
            work = trace.phases[phase].steps[size]
            expected_s = work.launches * KERNEL_S + work.bytes / BYTES_PER_S + work.flops / FLOPS_PER_S
            self._known[key] = work.launches, work.bytes, expected_s
        return self._known[key]

    def job_s(self, job: TrainingJob) -> float:
        return sum(count * self.step(job, phase, size)[2] for phase, size, count in self.steps(job))


def shape_of(context: Context) -> Shape:
    """The shape of a run's training."""
    work, cohort = _Work(context), cohort_of(context)
    steps, shared, kernels, moved = 0, 0, 0, 0
    units = _stacker().units(cohort, context.size)
    for unit in units:
        longest: Counter[tuple[int, int]] = Counter()
        for job in unit:
            for phase, size, count in work.steps(job):
                launches, size_bytes, _ = work.step(job, phase, size)
                steps, kernels, moved = steps + count, kernels + count * launches, moved + count * size_bytes
                longest[phase, size] = max(longest[phase, size], count)
        # Steps of one batch size are taken together.
        shared += longest.total()
    return Shape(
        kernels=kernels / max(steps, 1),
        kernel_bytes=moved / max(kernels, 1),
        together=steps / max(shared, 1),
        units=len(units),
        jobs=len(cohort),
        expected_s=sum(_expected_s(context, work, each) for each in context.planned.plan.prices),
    )


def _expected_s(context: Context, work: _Work, prices: Prices) -> float:
    """The seconds in which one core would train all jobs of an exchange, one after another."""
    jobs = _cohort(context, prices)
    share = _participants(context, prices) / max(len(jobs), 1)
    return _times(context, prices) * share * sum(map(work.job_s, jobs))


def cohort_of(context: Context) -> list[TrainingJob]:
    """Jobs like those of the first round, in the exchange that takes the most steps over the run."""
    return _cohort(context, _heaviest(context))


def _heaviest(context: Context) -> Prices:
    plan = context.planned.plan
    return max(
        plan.prices, key=lambda prices: _times(context, prices) * prices.demand.steps[plan.clients.kind].sum()
    )


def _times(context: Context, prices: Prices) -> int:
    rounds = context.planned.plan.scenario.server.until.rounds or _ROUNDS
    return rounds // prices.every if prices.at == "round" else 1


def _participants(context: Context, prices: Prices) -> int:
    """How many clients take part in an exchange at a time."""
    plan = context.planned.plan
    admitted = int(np.count_nonzero(plan.clients.admitted))
    participants = plan.scenario.server.participants
    return admitted if prices.everyone or participants is None else min(participants, admitted)


def _cohort(context: Context, prices: Prices) -> list[TrainingJob]:
    """Jobs like an exchange's first ones in the run."""
    plan = context.planned.plan
    clients = np.flatnonzero(plan.clients.admitted)
    count = min(_participants(context, prices), _MOST_JOBS)
    return [
        TrainingJob(
            place,
            client,
            prices.exchange,
            0,
            0,
            0,
            draws.derive(plan.scenario.seed, "probe", client=client),
            int(prices.demand.steps[plan.clients.kind[client]]),
        )
        for place, client in enumerate(clients[:count].tolist())
    ]
