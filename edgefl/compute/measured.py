"""One client's exchange done for real on this machine: its memory and its time.

The traced cost is what a device needs. This is what a host with Python, torch and its libraries takes, and so
bounds the error of the trace. Each measurement is done in a fresh process: freed memory does not all leave a
process, and importing torch alone takes 200 MB, so only differences within a fresh process mean something.

The work is done as by the reference engine, on one thread and on random data of the right shapes: first with
memory watched, then timed. While memory is watched, allocators return what is freed to the system; afterwards
they keep it, as in a run.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, TypeVarTuple

import psutil
import torch
from torch import Tensor

from edgefl.compute.heap import keep_freed_memory
from edgefl.compute.job import Outcome, Task
from edgefl.compute.loop import work
from edgefl.core import fresh
from edgefl.core.event import TrainingJob
from edgefl.core.host import forget_high_water, high_water_bytes
from edgefl.core.steps import step_sequence
from edgefl.protocol import Assignment, Batch, Ctx, Exchange, Method, Net, Phase, tree_map

Arguments = TypeVarTuple("Arguments")


@dataclass(frozen=True)
class ClientWork:
    """One client's exchange.

    Attributes:
        net: the client's model.
        method: built for it.
        exchange: one of the method's.
        samples: of the client.
        batch_size: of local training.
        lr: the learning rate.
        prepare: (phase, number of samples, generator) -> a batch's x.
    """

    net: Net
    method: Method
    exchange: Exchange
    samples: int
    batch_size: int
    lr: float
    prepare: Callable[[Phase, int, torch.Generator], Tensor]


@dataclass(frozen=True)
class MeasuredExchange:
    """What one client's exchange took.

    Attributes:
        steps: how many were done.
        wall_s, cpu_s: seconds of an exchange, the median of several.
        added_bytes: the most that the work added to the process's memory, by the kernel's high-water mark or,
            where there is none, by sampling.
        rss_before_bytes: resident with all libraries loaded, before the model is received.
        rss_after_bytes: resident with the result at hand.
        rss_peak_bytes: the highest sample in between.
    """

    steps: int
    wall_s: float
    cpu_s: float
    added_bytes: int
    rss_before_bytes: int
    rss_after_bytes: int
    rss_peak_bytes: int


# Exchanges are timed until they have taken so long together.
_TIMED_S = 0.2
# glibc returns every freed block of 64 KiB or more to the system at once.
_RETURN_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def measure(
    build: Callable[[*Arguments], ClientWork],
    /,
    *arguments: *Arguments,
    limit: int | None = None,
) -> MeasuredExchange:
    """Does one client's exchange in a fresh process.

    Args:
        build: makes the work there; defined at the top level of a module.
        arguments: of ``build``.
        limit: the maximum number of steps in each phase; None for all.

    Raises:
        EdgeflError: ``build`` raised it.
        RunError: the process failed.
    """
    return fresh.call(_measure, build, arguments, limit, variables=_RETURN_MEMORY)


def _measure(
    build: Callable[..., ClientWork], arguments: tuple[Any, ...], limit: int | None
) -> MeasuredExchange:
    torch.set_num_threads(1)
    return _measured(_Client(build(*arguments)), limit)


class _Client:
    """A client that does the same exchange several times."""

    def __init__(self, given: ClientWork) -> None:
        self._given = given
        _load_libraries()
        self._generator = torch.Generator().manual_seed(0)
        self._server = given.method.server(given.net.init(0))
        self._state = given.method.client(given.net.init(0))

    def sizes(self, limit: int | None) -> dict[str, list[int]]:
        """The batch sizes of each phase's steps."""
        samples, batch_size = self._given.samples, self._given.batch_size
        return {
            phase.name: [size for _, size in step_sequence(samples, batch_size, phase.passes)][:limit]
            for phase in self._given.exchange.work.phases
        }

    def exchange(self, limit: int | None) -> Outcome:
        """Does the exchange."""
        return work(self._task(self.sizes(limit)))

    def _task(self, sizes: dict[str, list[int]]) -> Task:
        given = self._given
        classes = given.net.classes
        counts = torch.full((classes,), given.samples / classes)
        steps = sum(map(len, sizes.values()))
        ctx = Ctx(client=0, round=0, lr=given.lr, steps=steps, samples=given.samples, class_counts=counts)

        def batches(phase: Phase) -> Iterator[Batch]:
            start = 0
            for size in sizes[phase.name]:
                yield self._batch(phase, size, start)
                start += size

        exchange = given.exchange
        ctx = exchange.context(Assignment(ctx))
        job = TrainingJob(
            id=0, client=0, exchange=exchange.name, version=0, round=0, nth=0, seed=0, steps=steps
        )
        # As on a device, what was received and what was kept are copies of its own, which the work can drop.
        state = None if self._state is None else tree_map(torch.clone, self._state)
        held = [(tree_map(torch.clone, exchange.down(self._server, 0)), state)]
        fold = replace(exchange.work, start=lambda _, __, ctx: exchange.work.start(*held.pop(), ctx))
        return Task(job, fold, {}, None, ctx, batches)

    def _batch(self, phase: Phase, size: int, start: int) -> Batch:
        """Random samples, ``start`` of which were before them in the phase."""
        y = torch.randint(self._given.net.classes, (size,))
        if phase.passes.samples is not None:
            # The places of public samples, in order, pass after pass.
            y = torch.arange(start, start + size) % phase.passes.samples
        return Batch(self._given.prepare(phase, size, self._generator), y)


def _measured(client: _Client, limit: int | None) -> MeasuredExchange:
    gc.collect()
    # The mark so far is that of the imports, whose peak is above what they hold in the end.
    forget_high_water()
    before, mark, over = _held(), high_water_bytes(), threading.Event()
    samples = [before]
    sampler = threading.Thread(target=_sample, args=(samples, over), daemon=True)
    sampler.start()
    try:
        outcome = client.exchange(limit)
    finally:
        over.set()
        sampler.join()
    after = _held()
    peak = max(*samples, after)
    added = max(peak - before, (high_water_bytes() or 0) - (mark or 0))
    del outcome
    keep_freed_memory()
    # One step of each phase allocates the memory that later steps reuse.
    client.exchange(1)
    wall_s, cpu_s = list[float](), list[float]()
    while sum(wall_s) < _TIMED_S:
        start, cpu_start = time.perf_counter(), time.process_time()
        client.exchange(limit)
        wall_s.append(time.perf_counter() - start)
        cpu_s.append(time.process_time() - cpu_start)
    return MeasuredExchange(
        steps=sum(map(len, client.sizes(limit).values())),
        wall_s=median(wall_s),
        cpu_s=median(cpu_s),
        added_bytes=added,
        rss_before_bytes=before,
        rss_after_bytes=after,
        rss_peak_bytes=peak,
    )


def _held() -> int:
    """What this process holds now."""
    return int(psutil.Process().memory_info().rss)


def _sample(samples: list[int], over: threading.Event) -> None:
    """Keeps the peak, read every millisecond."""
    while not over.wait(1e-3):
        samples[0] = max(samples[0], _held())


def _load_libraries() -> None:
    """Loads what torch loads on first use, so that it does not count as the work's memory."""
    layer = torch.nn.Conv2d(2, 2, 3)
    with contextlib.suppress(RuntimeError):
        layer(torch.ones(2, 2, 8, 8)).sum().backward()
    (torch.ones(4, 4) @ torch.ones(4, 4)).sum().item()
