"""Times one model in the process that calls it; ``edgefl.export.bench`` has fresh processes do so.

One process for each measurement, so that nothing another runtime loaded, or another number of threads left
behind, is part of it.
"""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from edgefl.compute.onnx_runtime import run, session
from edgefl.core import host
from edgefl.core.errors import UserError
from edgefl.export.model import ExportForm
from edgefl.show.onnx import MeasuredCalls, OperatorTime

Call = Callable[[], Any]
Clock = Callable[[], float]

# However small the budget, at least this many calls are made.
LEAST_WARM, LEAST_RUNS = 3, 10
# The share of the budget that warming up may take.
_WARM_SHARE = 0.25
_PROFILED_RUNS = 60
_LEAST_S = 1e-9


@dataclass(frozen=True)
class Measurement:
    """What to time.

    Attributes:
        model: the ONNX file.
        batch: samples per call.
        warmup: calls before the first that counts.
        runs: calls that count.
        budget_s: seconds after which the measurement stops early.
        cpu: count the process's CPU time instead of wall time: on one thread of a busy machine, what other
            programs take in between is not the model's.
    """

    model: str
    threads: int = 1
    batch: int = 1
    warmup: int = 20
    runs: int = 300
    budget_s: float = 30.0
    cpu: bool = False

    @property
    def clock(self) -> Clock:
        return time.process_time if self.cpu else time.perf_counter


@dataclass(frozen=True)
class Reference:
    """The PyTorch model that an ONNX file was exported from.

    The client may be "global", and the version is of the server's state.
    """

    folder: Path
    client: int | str
    version: int
    form: ExportForm


class TimedCalls(NamedTuple):
    """Calls of a model.

    Attributes:
        warmup: how many came before those that count.
        seconds: of each call that counts.
        core_share: their CPU time over the wall time; more than 1 on several threads.
    """

    warmup: int
    seconds: list[float]
    core_share: float


def time_onnx(measurement: Measurement) -> MeasuredCalls:
    """Times a model in ONNX Runtime.

    Raises:
        UserError: ONNX Runtime cannot run the model.
    """
    # Their own memory is not the model's.
    import numpy.random  # noqa: F401
    import onnxruntime  # noqa: F401

    def load_and_run() -> tuple[Any, float, TimedCalls]:
        start = time.perf_counter()
        running = session(measurement.model, measurement.threads)
        load_s = time.perf_counter() - start
        inputs = random_inputs(running, measurement.batch)
        # The session is in memory until its growth is read.
        return running, load_s, timed(lambda: run(running, inputs), measurement, measurement.clock)

    (_, load_s, calls), peak_bytes = host.growth(load_and_run)
    return measured(measurement, f"onnxruntime {version('onnxruntime')}", load_s, peak_bytes, calls)


def time_torch(measurement: Measurement, reference: Reference) -> MeasuredCalls:
    """Times the same model in PyTorch, eagerly.

    Raises:
        UserError: the run does not hold the model.
    """
    import torch

    from edgefl.export.graph import Served
    from edgefl.export.trained import trained
    from edgefl.planning.learning import DataAccess

    torch.set_num_threads(measurement.threads)
    source = trained(reference.folder, DataAccess(need="nothing"), str(reference.version))
    client, form = reference.client, reference.form
    predictor = source.predictor(client if isinstance(client, int) else None)
    shape = (measurement.batch, *source.federation.spec.shape)

    def load_and_run() -> tuple[Served, TimedCalls]:
        served = Served(predictor, source.federation.spec, form).eval()
        x = torch.randn(shape) if form.raw_input else torch.randint(256, shape, dtype=torch.uint8)
        return served, timed(lambda: served(x), measurement, measurement.clock)

    with torch.inference_mode():
        (_, calls), peak_bytes = host.growth(load_and_run)
    return measured(measurement, f"torch {torch.__version__}", None, peak_bytes, calls)


def timed(call: Call, measurement: Measurement, clock: Clock = time.perf_counter) -> TimedCalls:
    """Times as many calls as asked for, or as the budget allows."""
    budget_s = measurement.budget_s
    start, warm = clock(), 0
    while warm < measurement.warmup and (warm < LEAST_WARM or clock() - start < budget_s * _WARM_SHARE):
        call()
        warm += 1
    seconds: list[float] = []
    start, cpu_start = clock(), time.process_time()
    while len(seconds) < measurement.runs and (len(seconds) < LEAST_RUNS or clock() - start < budget_s):
        before = clock()
        call()
        seconds.append(clock() - before)
    share = (time.process_time() - cpu_start) / max(clock() - start, _LEAST_S)
    return TimedCalls(warm, seconds, share)


def measured(
    measurement: Measurement, runtime: str, load_s: float | None, peak_bytes: int, calls: TimedCalls
) -> MeasuredCalls:
    """The figures of a measurement."""
    seconds = np.array(calls.seconds)
    p50, p90, p99 = map(float, np.percentile(seconds, (50, 90, 99)))
    return MeasuredCalls(
        runtime=runtime,
        threads=measurement.threads,
        load_s=load_s,
        p50_s=p50,
        p90_s=p90,
        p99_s=p99,
        images_per_s=measurement.batch * len(seconds) / float(seconds.sum()),
        peak_bytes=peak_bytes,
        core_share=calls.core_share,
        warmup=calls.warmup,
        runs=len(seconds),
        stopped_early=len(seconds) < measurement.runs,
    )


_FLOATS = {"float": np.float32, "float16": np.float16, "double": np.float64}
_ZEROS = {name: np.dtype(name) for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()}  # noqa: SIM905 - names as words


def random_inputs(running: Any, batch: int) -> dict[str, Any]:
    """Random values for every input of a session: bytes for pixels, normal numbers for floats, else zeros.

    Raises:
        UserError: an input takes something else.
    """
    rng = np.random.default_rng(0)
    inputs: dict[str, Any] = {}
    for one in running.get_inputs():
        kind = one.type.removeprefix("tensor(").removesuffix(")")
        if kind not in _FLOATS and kind not in _ZEROS:
            raise UserError(f"input {one.name!r} takes {one.type}, for which edgefl makes no random values")
        shape = [batch, *one.shape[1:]] if one.shape else []
        if not all(isinstance(size, int) for size in shape):
            raise UserError(f"input {one.name!r} has an axis of unknown size; only the batch may vary")
        if kind == "uint8":
            inputs[one.name] = rng.integers(0, 256, shape, dtype=np.uint8)
        elif kind in _FLOATS:
            inputs[one.name] = rng.standard_normal(shape).astype(_FLOATS[kind])
        else:
            inputs[one.name] = np.zeros(shape, dtype=_ZEROS[kind])
    return inputs


def profile(measurement: Measurement) -> list[OperatorTime]:
    """Every operator that ONNX Runtime starts, the slowest first.

    Raises:
        UserError: ONNX Runtime cannot run the model.
    """
    with TemporaryDirectory() as folder:
        running = session(measurement.model, measurement.threads, str(Path(folder) / "profile"))
        inputs = random_inputs(running, measurement.batch)
        timed(lambda: run(running, inputs), replace(measurement, runs=_PROFILED_RUNS))
        events = json.loads(Path(running.end_profiling()).read_text(encoding="utf-8"))
    return operators(events)


_KERNEL = "_kernel_time"
_MICROSECOND_S = 1e-6


def operators(events: Iterable[Mapping[str, Any]]) -> list[OperatorTime]:
    """ONNX Runtime's profile by operator; of its calls the second half, when everything is warm."""
    calls: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith(_KERNEL):
            calls[event["name"].removesuffix(_KERNEL), event["args"]["op_name"]].append(event["dur"])
    seconds = {key: median(times[len(times) // 2 :]) * _MICROSECOND_S for key, times in calls.items()}
    total = sum(seconds.values()) or 1.0
    times = [OperatorTime(node, op, taken, taken / total) for (node, op), taken in seconds.items()]
    return sorted(times, key=lambda one: -one.seconds)
