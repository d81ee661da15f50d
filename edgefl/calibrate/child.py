"""Times workloads in the process that it is called in, which should be a fresh one.

On one thread the seconds are the process's CPU time: what other programs take in between is not the device's.
More threads wait for each other, which CPU time does not show; there the seconds are wall time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import psutil
import torch

from edgefl.calibrate.power import meter
from edgefl.calibrate.workloads import Call, Workload, ready
from edgefl.compute.heap import keep_freed_memory

Clock = Callable[[], float]

LEAST_CALLS = 4
# Calls before the first that counts: code is made, memory is fetched, caches fill.
WARM_S = 0.3
LEAST_WARM = 2


class Calls(NamedTuple):
    """Calls of one workload in one process.

    Attributes:
        seconds: of each call.
        share: of the time that they took, how much the process had a core.
        watts: the mean power; None where nothing counts it.
    """

    seconds: list[float]
    share: float
    watts: float | None


def time_all(workloads: Sequence[Workload], budget_s: float, threads: int) -> tuple[int, list[Calls]]:
    """Times workloads, one after another.

    Args:
        workloads: which.
        budget_s: seconds to time each of them.
        threads: to work on.

    Returns:
        The bytes of the process with its libraries loaded, and the calls of each workload.
    """
    torch.set_num_threads(threads)
    keep_freed_memory()
    loaded_bytes = psutil.Process().memory_info().rss
    clock = time.process_time if threads == 1 else time.perf_counter
    return loaded_bytes, [timed(ready(one), budget_s, clock) for one in workloads]


def timed(call: Call, budget_s: float, clock: Clock = time.process_time) -> Calls:
    """Times as many calls as the budget has room for, and four at least, after some to warm up."""
    _warm(call, budget_s)
    seconds: list[float] = []
    with meter() as power:
        start, ran = time.perf_counter(), time.process_time()
        while len(seconds) < LEAST_CALLS or time.perf_counter() - start < budget_s:
            before = clock()
            call()
            seconds.append(clock() - before)
        share = (time.process_time() - ran) / (time.perf_counter() - start)
    return Calls(seconds, share, power.watts)


def _warm(call: Call, budget_s: float) -> None:
    start, calls = time.perf_counter(), 0
    while calls < LEAST_WARM or time.perf_counter() - start < min(WARM_S, budget_s):
        call()
        calls += 1
