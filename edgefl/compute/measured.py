"""One client's exchange done for real on this machine: its memory and its time.

The traced cost is what a device needs. This is what a host with Python, torch and its libraries takes, and so
bounds the error of the trace. Each measurement is done in a fresh process: freed memory does not all leave a
process, and importing torch alone takes 200 MB, so only differences within a fresh process mean something.

The work is done as by the reference engine, on one thread and on random data of the right shapes: in one
process for its memory, where allocators return what is freed to the system, and in another for its time.
"""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from statistics import median

import torch
from torch import Tensor

from edgefl.compute.job import Outcome, Task
from edgefl.compute.loop import work
from edgefl.compute.process import keep_freed_memory
from edgefl.core import fresh
from edgefl.core.event import TrainingJob
from edgefl.core.host import growth
from edgefl.core.steps import step_sequence
from edgefl.protocol import Assignment, Batch, Ctx, Exchange, Method, Net, Phase, tree_map


@dataclass(frozen=True)
class ClientWork:
    """One client's exchange; ``prepare`` is (phase, number of samples, generator) -> a batch's x."""

    net: Net
    method: Method
    exchange: Exchange
    samples: int
    batch_size: int
    lr: float
    prepare: Callable[[Phase, int, torch.Generator], Tensor]


@dataclass(frozen=True)
class MeasuredExchange:
    """What one client's exchange took: seconds of the processor, and the most that a process grew by."""

    steps: int
    cpu_s: float
    added_bytes: int


# Exchanges are timed until they have taken so long together.
_TIMED_S = 0.2
# glibc returns every freed block of 64 KiB or more to the system at once.
_RETURN_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def measure(build: Callable[[], ClientWork], limit: int) -> MeasuredExchange:
    """Does the exchange that ``build`` makes, in fresh processes, with at most ``limit`` steps in a phase."""
    added_bytes = fresh.call(_memory, build, limit, variables=_RETURN_MEMORY)
    return MeasuredExchange(*fresh.call(_time, build, limit), added_bytes)


def _memory(build: Callable[[], ClientWork], limit: int) -> int:
    exchange = _exchange(build())
    gc.collect()
    return growth(partial(exchange, limit))[1]


def _time(build: Callable[[], ClientWork], limit: int) -> tuple[int, float]:
    """The number of steps of an exchange, and its seconds."""
    keep_freed_memory()
    exchange, cpu_s = _exchange(build()), list[float]()
    # One step of each phase allocates the memory that later steps reuse.
    exchange(1)
    while sum(cpu_s) < _TIMED_S:
        start = time.process_time()
        outcome = exchange(limit)
        cpu_s.append(time.process_time() - start)
    return outcome.job.steps, median(cpu_s)


def _exchange(given: ClientWork) -> Callable[[int], Outcome]:
    """Does the exchange, in each phase so many steps at most, whenever it is called."""
    # What torch loads on first use does not count as the work's memory.
    torch.nn.Conv2d(2, 2, 3)(torch.ones(2, 2, 8, 8)).sum().backward()
    (torch.ones(4, 4) @ torch.ones(4, 4)).sum().item()
    generator, exchange = torch.Generator().manual_seed(0), given.exchange
    server, own = given.method.server(given.net.init(0)), given.method.client(given.net.init(0))

    def batches(sizes: Sequence[int], phase: Phase) -> Iterator[Batch]:
        start = 0
        for size in sizes:
            y = torch.randint(given.net.classes, (size,))
            if phase.passes.samples is not None:
                # The places of public samples, in order, pass after pass.
                y = torch.arange(start, start + size) % phase.passes.samples
            yield Batch(given.prepare(phase, size, generator), y)
            start += size

    def done(limit: int) -> Outcome:
        sizes = {}
        for phase in exchange.work.phases:
            every = step_sequence(given.samples, given.batch_size, phase.passes)
            sizes[phase.name] = [size for _, size in islice(every, limit)]
        steps, classes = sum(map(len, sizes.values())), given.net.classes
        counts = torch.full((classes,), given.samples / classes)
        ctx = Ctx(client=0, round=0, lr=given.lr, steps=steps, samples=given.samples, class_counts=counts)
        job = TrainingJob(0, 0, exchange.name, version=0, round=0, nth=0, seed=0, steps=steps)
        # As on a device, what was received and what was kept are copies of its own, which the work can drop.
        state = None if own is None else tree_map(torch.clone, own)
        held = [(tree_map(torch.clone, exchange.down(server, 0)), state)]
        fold = replace(exchange.work, start=lambda _, __, ctx: exchange.work.start(*held.pop(), ctx))
        ctx = exchange.context(Assignment(ctx))
        return work(Task(job, fold, {}, None, ctx, lambda phase: batches(sizes[phase.name], phase)))

    return done
