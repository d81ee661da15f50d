"""Workloads timed in fresh processes, in rounds, so that a disturbance affects all of them alike.

On one thread a process takes its own CPU time, which excludes other programs on the machine. Several threads
wait for each other, which CPU time does not show; there it takes wall time.
"""

import datetime as dt
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from statistics import median
from typing import Any, NamedTuple

import psutil
import torch

from edgefl.calibrate.energy import EnergySpan
from edgefl.calibrate.workloads import Call, OnnxInference, Operation, Workload, export
from edgefl.compute.process import keep_freed_memory
from edgefl.core.cost import Work
from edgefl.show.answers import Steps

LEAST_CALLS = 4
# Before the calls that count: code is generated, memory is allocated, caches fill.
WARM_S = 0.3
LEAST_WARM = 2

Clock = Callable[[], float]


@dataclass(frozen=True)
class Effort:
    """How long a calibration measures.

    Attributes:
        repeats: processes for each workload.
        kernel_s: seconds to time each kernel in each of them.
        step_s: likewise for a network's training steps.
        inference_s: likewise for a network's inference; 0 leaves inference out.
        power_s: seconds at rest, busy on one core and busy on all threads, where power can be measured.
    """

    repeats: int = 3
    kernel_s: float = 0.1
    step_s: float = 1.0
    inference_s: float = 0.2
    power_s: float = 10.0


FULL = Effort()
QUICK = Effort(repeats=1, kernel_s=0.0, step_s=0.0, inference_s=0.0, power_s=0.2)


class Calls(NamedTuple):
    """One workload in one process: each call's seconds, and all calls' CPU time over their wall time."""

    seconds: list[float]
    share: float
    span: EnergySpan


def time_all(workloads: Sequence[Workload], budget_s: float, threads: int) -> tuple[int, list[Calls]]:
    """Times workloads one after another, ``budget_s`` seconds each, in the process that calls it.

    Returns:
        The resident bytes with all libraries loaded, and the calls of each workload.
    """
    torch.set_num_threads(threads)
    keep_freed_memory()
    loaded_bytes = psutil.Process().memory_info().rss
    clock = time.process_time if threads == 1 else time.perf_counter
    return loaded_bytes, [timed(one.computation.ready(one.batch), budget_s, clock) for one in workloads]


def timed(call: Call, budget_s: float, clock: Clock = time.process_time) -> Calls:
    """Warms up, then times as many calls as the budget allows, and at least four."""
    start, warm = time.perf_counter(), 0
    while warm < LEAST_WARM or time.perf_counter() - start < min(WARM_S, budget_s):
        call()
        warm += 1
    seconds: list[float] = []
    began_s, start, cpu_start = time.time(), time.perf_counter(), time.process_time()
    while len(seconds) < LEAST_CALLS or time.perf_counter() - start < budget_s:
        before = clock()
        call()
        seconds.append(clock() - before)
    share = (time.process_time() - cpu_start) / (time.perf_counter() - start)
    return Calls(seconds, share, EnergySpan(began_s, time.time()))


@dataclass(frozen=True)
class Timing:
    """One workload over all processes.

    Attributes:
        work: the kernels of one call.
        seconds: the median over the processes of each one's median.
        spread: the slowest process over the fastest, less 1.
        share: the smallest share of a core that a process had while it was timed.
    """

    workload: Workload
    work: Work
    seconds: float
    spread: float
    share: float


class TimingPlan(NamedTuple):
    """Workloads that share a process, and the seconds to time each of them."""

    workloads: Sequence[Workload]
    budget_s: float

    @property
    def label(self) -> str:
        if isinstance(self.workloads[0].computation, Operation):
            return "kernels"
        return ", ".join(one.name for one in self.workloads[:2])


@dataclass(frozen=True)
class Circumstances:
    """How all numbers of a file were measured; ``repeats`` are processes for each workload."""

    threads: int
    repeats: int
    date: str

    @property
    def in_threads(self) -> str:
        """The threads in words."""
        return f"{self.threads} thread{'s' * (self.threads > 1)}"

    def of(self, package: str) -> str:
        """In words, for the package that did the work."""
        processes = f"{self.repeats} fresh process{'es' * (self.repeats > 1)}"
        return (
            f"edgefl calibrate on {self.date}: {runtime(package)}, {self.in_threads}, median of {processes}"
        )


def runtime(package: str) -> str:
    """An installed package with its version."""
    return f"{package} {version(package)}"


class Session:
    """The measurements of one calibration, and their progress."""

    def __init__(self, effort: Effort, threads: int, call: Callable[..., Any], progress: Steps) -> None:
        self.effort = effort
        self.how = Circumstances(threads, effort.repeats, dt.datetime.now(dt.UTC).date().isoformat())
        self._call = call
        self._progress = progress
        self._done = self._total = 0

    def expect(self, processes: int) -> None:
        """Says how many more processes there will be."""
        self._total = self._done + processes

    def timed(self, plans: Sequence[TimingPlan]) -> tuple[list[Timing], int]:
        """Times every workload.

        Returns:
            A timing for each workload, and the resident bytes of a process with all libraries loaded.

        Raises:
            RunError: a process failed.
        """
        works = [(one, one.computation.work(one.batch)) for plan in plans for one in plan.workloads]
        calls: defaultdict[str, list[Calls]] = defaultdict(list)
        loaded: list[int] = []
        threads = self.how.threads
        for _ in range(self.effort.repeats):
            for plan in plans:
                self._next(plan.label)
                loaded_bytes, each = self._call(time_all, *plan, threads, threads=threads)
                loaded.append(loaded_bytes)
                for one, its_calls in zip(plan.workloads, each, strict=True):
                    calls[one.name].append(its_calls)
        found = []
        for one, work in works:
            medians = [median(process.seconds) for process in calls[one.name]]
            share = min(process.share for process in calls[one.name])
            found.append(Timing(one, work, median(medians), max(medians) / min(medians) - 1, share))
        return found, int(median(loaded))

    def worked(self, workload: Workload, seconds: float, threads: int) -> EnergySpan:
        """When a process did the workload again and again, for so many seconds.

        Raises:
            RunError: the process failed.
        """
        self._next(f"power: {workload.name}")
        _, (calls,) = self._call(time_all, [workload], seconds, threads, threads=threads)
        span: EnergySpan = calls.span
        return span

    def export(self, workloads: Sequence[Workload]) -> None:
        """Writes the ONNX files of inferences.

        Raises:
            RunError: the process failed.
        """
        self._next("export to ONNX")
        self._call(
            export,
            [one.computation for one in workloads if isinstance(one.computation, OnnxInference)],
            threads=1,
        )

    def _next(self, label: str) -> None:
        self._progress(label, self._done, self._total)
        self._done += 1
