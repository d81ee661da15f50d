"""A fresh process that times workloads: told on standard input, answers on standard output, in JSON.

The order is ``{"threads": N, "budget_s": S, "workloads": [...]}``; the answer has the memory of the process
with its libraries loaded, and for each workload the seconds of each call, the share of the time that the
process had a core and, where the system counts it, the mean power.

On one thread the seconds are the process's CPU time: what other programs take in between is not the device's.
More threads wait for each other, which CPU time does not show; there the seconds are wall time.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import psutil

from edgefl.calibrate.power import meter
from edgefl.calibrate.workloads import Call, Workload, ready

Clock = Callable[[], float]

LEAST_CALLS = 4
# Calls before the first that counts: code is made, memory is fetched, caches fill.
WARM_S = 0.3
LEAST_WARM = 2


def main() -> None:
    """Does what one order says."""
    # Whatever prints must not print among the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    order = json.load(sys.stdin)
    import torch

    from edgefl.compute.heap import keep_freed_memory

    torch.set_num_threads(order["threads"])
    keep_freed_memory()
    loaded_bytes = psutil.Process().memory_info().rss
    clock = time.process_time if order["threads"] == 1 else time.perf_counter
    found = [timed(ready(Workload(**one)), order["budget_s"], clock) for one in order["workloads"]]
    json.dump({"loaded_bytes": loaded_bytes, "timings": found}, answers)
    answers.flush()


def timed(call: Call, budget_s: float, clock: Clock = time.process_time) -> dict[str, Any]:
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
    return {"seconds": seconds, "share": share, "watts": power.watts}


def _warm(call: Call, budget_s: float) -> None:
    start, calls = time.perf_counter(), 0
    while calls < LEAST_WARM or time.perf_counter() - start < min(WARM_S, budget_s):
        call()
        calls += 1


if __name__ == "__main__":
    main()
