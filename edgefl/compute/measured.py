"""What one client's exchange takes on the machine at hand: memory and time of the real work.

The traced cost is what a device needs; this is what a host with Python, torch and its libraries really takes
for it, and so a bound on how far the trace can be off. A fresh process each, because memory that was freed
does not all leave a process, and importing torch alone costs 200 MB: only differences within a fresh one mean
something.

The work is done as the reference engine does it, on one thread and on random data of the right shapes. The
first time memory is watched, and the last time the clock. Allocators keep nothing while memory is watched, so
that what was freed is gone; after that they keep it, as in a run.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from edgefl.compute.heap import keep_freed_memory
from edgefl.compute.job import Task
from edgefl.compute.loop import work
from edgefl.compute.watching import Memory, watching
from edgefl.core import fresh
from edgefl.core.event import Job
from edgefl.core.steps import step_sequence
from edgefl.protocol import Batch, Ctx, Exchange, Method, Net, Phase, tree_map


@dataclass(frozen=True)
class Piece:
    """One client's exchange.

    Attributes:
        net: the client's model.
        method: built on it.
        exchange: one of the method's.
        samples: how many the client has.
        batch_size: of local training.
        lr: the rate.
    """

    net: Net
    method: Method
    exchange: Exchange
    samples: int
    batch_size: int
    lr: float


Build: TypeAlias = Callable[[Mapping[str, Any]], Piece]
"""(settings) -> the work: a module's own function, found by its name in the fresh process."""


def measure(
    build: Build, settings: Mapping[str, Any], *, device: str = "cpu", limit: int | None = None
) -> dict[str, Any]:
    """Does one client's exchange in a fresh process.

    Args:
        build: makes the work of the settings there.
        settings: plain data.
        device: torch's, such as "cuda:0".
        limit: the most steps to take in each phase; None is all.

    Returns:
        ``steps``, how many were taken, on ``device``.

        ``added_bytes``: the most that the work added to the process's memory, by the kernel's mark or, where
        there is none, by sampling.

        ``wall_s`` and ``cpu_s``: of the last time; ``first_wall_s``: of the first, which loads the libraries'
        code as well.

        ``rss_before_bytes``: resident with all libraries loaded and the model not yet received;
        ``rss_after_bytes``: with the result at hand; ``rss_peak_bytes``: the most that was sampled between.
        ``uss_...``: the same of what is the process's own. It is sampled more rarely.

        ``high_water_added_bytes``: what the kernel's own high-water mark rose by; None where it tells none.
        ``maxrss_added_bytes``: the same for ``ru_maxrss``, which a large start-up hides.

        ``cuda_before_bytes`` and ``cuda_peak_bytes``: the CUDA allocator's; None on other devices.

    Raises:
        EdgeflError: the work cannot be built.
        RunError: the process failed.
    """
    return fresh.call(_built_and_measured, build, settings, device, limit, variables=_GIVEN_BACK)


# glibc gives every freed block of 64 KiB or more back at once.
_GIVEN_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def _built_and_measured(
    build: Build, settings: Mapping[str, Any], device: str, limit: int | None
) -> dict[str, Any]:
    torch.set_num_threads(1)
    return measured(build(settings), torch.device(device), limit)


def measured(piece: Piece, device: torch.device, limit: int | None = None) -> dict[str, Any]:
    """Does the work in this process; see ``measure``."""
    _load_libraries(device)
    server = piece.method.server(piece.net.init(0))
    own = piece.method.client(piece.net.init(0))

    def sizes(limit: int | None) -> dict[str, list[int]]:
        return {phase.name: _sizes(piece, phase)[:limit] for phase in piece.exchange.work.phases}

    def once(limit: int | None) -> None:
        # As on a device: what was received and what was kept are its own copies.
        payload = tree_map(lambda leaf: leaf.to(device, copy=True), piece.exchange.down(server, 0))
        state = None if own is None else tree_map(lambda leaf: leaf.to(device, copy=True), own)
        outcome = work(_task(piece, payload, state, sizes(limit), device))
        del payload, state
        outcomes.append(outcome)
        _finish(device)

    outcomes: list[Any] = []
    gc.collect()
    with watching() as memory, _cuda(device) as cuda:
        start = time.perf_counter()
        once(limit)
        first_wall_s = time.perf_counter() - start
    outcomes.clear()
    keep_freed_memory()
    # One step of each phase fetches the memory that later steps take again.
    once(1)
    start, ran = time.perf_counter(), time.process_time()
    once(limit)
    return {
        "device": str(device),
        "steps": sum(map(len, sizes(limit).values())),
        "wall_s": time.perf_counter() - start,
        "cpu_s": time.process_time() - ran,
        "first_wall_s": first_wall_s,
        **_numbers(memory),
        **cuda,
    }


def _numbers(memory: Memory) -> dict[str, int | None]:
    sampled = memory.peak.rss - memory.before.rss
    return {
        "added_bytes": max(sampled, memory.high_water_added or 0),
        "rss_before_bytes": memory.before.rss,
        "rss_after_bytes": memory.after.rss,
        "rss_peak_bytes": memory.peak.rss,
        "uss_before_bytes": memory.before.uss,
        "uss_after_bytes": memory.after.uss,
        "uss_peak_bytes": memory.peak.uss,
        "high_water_added_bytes": memory.high_water_added,
        "maxrss_added_bytes": memory.maxrss_added,
    }


def _load_libraries(device: torch.device) -> None:
    """Has torch load what it loads on first use, so that it is not taken for the work's memory."""
    layer = torch.nn.Conv2d(2, 2, 3).to(device)
    with contextlib.suppress(RuntimeError):
        layer(torch.ones(2, 2, 8, 8, device=device)).sum().backward()
    (torch.ones(4, 4, device=device) @ torch.ones(4, 4, device=device)).sum().item()


def _sizes(piece: Piece, phase: Phase) -> list[int]:
    """The batch sizes of a phase's steps."""
    return [size for _, size in step_sequence(piece.samples, piece.batch_size, phase.passes)]


def _task(
    piece: Piece, payload: Any, state: Any, phases: Mapping[str, list[int]], device: torch.device
) -> Task:
    classes = piece.net.classes
    counts = torch.full((classes,), piece.samples / classes, device=device)
    steps = sum(map(len, phases.values()))
    ctx = Ctx(client=0, round=0, lr=piece.lr, steps=steps, samples=piece.samples, class_counts=counts)

    def batches(phase: Phase) -> Iterator[Batch]:
        for size in phases[phase.name]:
            views = (phase.views,) if phase.views > 1 else ()
            x = torch.randn(*views, size, *piece.net.shape, device=device)
            y = torch.randint(classes, (size,), device=device)
            # As data come: a pixel's channels side by side.
            yield Batch(x if views else x.to(memory_format=torch.channels_last), y)

    name = piece.exchange.name
    job = Job(id=0, client=0, exchange=name, version=0, round=0, nth=0, seed=0, steps=steps)
    return Task(job, piece.exchange.work, payload, state, ctx, batches)


@contextlib.contextmanager
def _cuda(device: torch.device) -> Iterator[dict[str, int | None]]:
    """The CUDA allocator's bytes before what is inside, and at most during it; None on other devices."""
    found: dict[str, int | None] = {"cuda_before_bytes": None, "cuda_peak_bytes": None}
    if device.type != "cuda":
        yield found
        return
    _finish(device)
    torch.cuda.reset_peak_memory_stats(device)
    found["cuda_before_bytes"] = torch.cuda.memory_allocated(device)
    yield found
    _finish(device)
    found["cuda_peak_bytes"] = torch.cuda.max_memory_allocated(device)


def _finish(device: torch.device) -> None:
    """Waits until an accelerator has done what it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
