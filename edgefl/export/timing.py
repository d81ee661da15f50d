"""A fresh process that times one model: told on standard input, answers on standard output, in JSON.

A process of its own for each measurement: what another runtime loaded, or another number of threads left
behind, is not in it. Memory is what the process gained from just before the model was loaded to its worst
moment.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil

from edgefl.compute.onnx_runtime import runtime, session
from edgefl.core.errors import EdgeflError

Call = Callable[[], Any]

# A budget leaves room for so many calls at least.
LEAST_WARM, LEAST_RUNS = 3, 10
# Of the budget, what warming up may take.
_WARM_SHARE = 0.25
PROFILED = 60
_LEAST_S = 1e-9


@dataclass(frozen=True)
class Order:
    """What to time.

    Attributes:
        model: the ONNX file.
        threads: to work on.
        batch: samples a call.
        warmup: calls before the first that counts.
        runs: calls that count.
        budget_s: when to stop earlier.
        run: the PyTorch side's: folder, client, version and form; ONNX Runtime's turn where it is empty.
        profile: whether to time each operator instead.
        cpu: whether to take the process's CPU time for the calls' seconds: on one thread of a busy machine,
            what other programs take in between is not the model's.
    """

    model: str
    threads: int = 1
    batch: int = 1
    warmup: int = 20
    runs: int = 300
    budget_s: float = 30.0
    run: dict[str, Any] = field(default_factory=dict)
    profile: bool = False
    cpu: bool = False

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def main() -> None:
    """Does what one order says; what it cannot do is answered, too."""
    # Whatever prints must not print among the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    order = Order(**json.load(sys.stdin))
    try:
        found = answer(order)
    except EdgeflError as error:
        found = {"error": {"what": error.what, "where": error.where, "hint": error.hint}}
    json.dump(found, answers)
    answers.flush()


def answer(order: Order) -> dict[str, Any]:
    """Times what an order says.

    Raises:
        UserError: the model cannot be run.
    """
    if order.profile:
        return {"nodes": profiled(order)}
    return timed_torch(order) if order.run else timed_onnx(order)


def timed_onnx(order: Order) -> dict[str, Any]:
    """ONNX Runtime's turn.

    Raises:
        UserError: it cannot run the model.
    """
    import onnxruntime  # noqa: F401 - its own memory is not the model's

    with growth() as memory:
        before = time.perf_counter()
        running = session(order.model, order.threads)
        load_s = time.perf_counter() - before
        given = random_inputs(running, order.batch)
        found = timed(lambda: running.run(None, given), order, _clock(order))
    return {**found, "runtime": runtime(), "load_s": load_s, "peak_bytes": memory[0]}


def timed_torch(order: Order) -> dict[str, Any]:
    """PyTorch's turn, eager, on the model of a run.

    Raises:
        UserError: the run does not hold the model.
    """
    import torch

    from edgefl.export.graph import Form, Served
    from edgefl.export.trained import trained
    from edgefl.planning.learning import DataAccess

    torch.set_num_threads(order.threads)
    run = order.run
    found = trained(Path(run["folder"]), DataAccess(need="nothing"), str(run["version"]))
    client = run["client"]
    predictor = found.global_model() if client == "global" else found.personal_model(client)
    spec, form = found.federation.spec, Form(**run["form"])
    with growth() as memory, torch.inference_mode():
        served = Served(predictor, spec, form).eval()
        shape = (order.batch, *spec.shape)
        x = torch.randn(shape) if form.raw_input else torch.randint(256, shape, dtype=torch.uint8)
        times = timed(lambda: served(x), order, _clock(order))
    return {**times, "runtime": f"torch {torch.__version__}", "load_s": None, "peak_bytes": memory[0]}


def _clock(order: Order) -> Callable[[], float]:
    return time.process_time if order.cpu else time.perf_counter


def timed(call: Call, order: Order, clock: Callable[[], float] = time.perf_counter) -> dict[str, Any]:
    """Times as many calls as were ordered, or the budget has room for.

    Returns:
        "warmup" (calls before), "seconds" (of each call) and "core_share" (of the time, what the process had
        a core for; more than 1 on several threads).
    """
    start, warm = clock(), 0
    while warm < order.warmup and (warm < LEAST_WARM or clock() - start < order.budget_s * _WARM_SHARE):
        call()
        warm += 1
    seconds: list[float] = []
    start, worked = clock(), time.process_time()
    while len(seconds) < order.runs and (len(seconds) < LEAST_RUNS or clock() - start < order.budget_s):
        before = clock()
        call()
        seconds.append(clock() - before)
    share = (time.process_time() - worked) / max(clock() - start, _LEAST_S)
    return {"warmup": warm, "seconds": seconds, "core_share": share}


def random_inputs(running: Any, batch: int) -> dict[str, Any]:
    """Random values for every input of a session: bytes for pixels, normal numbers for floats, else zeros."""
    rng = np.random.default_rng(0)
    found = {}
    for one in running.get_inputs():
        shape = [batch, *one.shape[1:]] if one.shape else []
        kind = one.type.removeprefix("tensor(").removesuffix(")")
        if kind == "uint8":
            found[one.name] = rng.integers(0, 256, shape, dtype=np.uint8)
        elif kind in _FLOATS:
            found[one.name] = rng.standard_normal(shape).astype(_FLOATS[kind])
        else:
            found[one.name] = np.zeros(shape, dtype=kind)
    return found


_FLOATS = {"float": np.float32, "float16": np.float16, "double": np.float64}


def profiled(order: Order) -> list[dict[str, Any]]:
    """Every operator that ONNX Runtime starts: its name, type and median seconds, the slowest first.

    Raises:
        UserError: it cannot run the model.
    """
    with TemporaryDirectory() as folder:
        running = session(order.model, order.threads, str(Path(folder) / "profile"))
        given = random_inputs(running, order.batch)
        timed(lambda: running.run(None, given), Order(**{**order.plain(), "runs": PROFILED}))
        events = json.loads(Path(running.end_profiling()).read_text(encoding="utf-8"))
    return operators(events)


_KERNEL = "_kernel_time"
_MICROSECOND_S = 1e-6


def operators(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """ONNX Runtime's profile by operator; of its calls the second half, when all is warm."""
    calls: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith(_KERNEL):
            calls[event["name"].removesuffix(_KERNEL), event["args"]["op_name"]].append(event["dur"])
    took = {key: median(times[len(times) // 2 :]) * _MICROSECOND_S for key, times in calls.items()}
    total = sum(took.values()) or 1.0
    return [
        {"node": name, "op": op, "seconds": seconds, "share": seconds / total}
        for (name, op), seconds in sorted(took.items(), key=lambda one: -one[1])
    ]


@contextmanager
def growth() -> Iterator[list[int]]:
    """What the process's memory grows by inside, in bytes; the list's first place holds it at the end."""
    process = psutil.Process()
    _forget_peak()
    before = process.memory_info().rss
    found = [0]
    yield found
    found[0] = max(0, (_peak_bytes() or process.memory_info().rss) - before)


def _forget_peak() -> None:
    """Has Linux count the largest memory anew; elsewhere the memory at the end is taken for it."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def _peak_bytes() -> int | None:
    """The largest memory since; None where the system does not say."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return None
    found = next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")), None)
    return None if found is None else int(found) * 1024


if __name__ == "__main__":
    main()
