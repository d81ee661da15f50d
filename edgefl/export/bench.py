"""How fast a model is: measured here in fresh processes, and predicted for devices by their cost models."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from edgefl.core import fresh
from edgefl.core.corners import known
from edgefl.core.cost import Kernel, Work
from edgefl.core.devices import TRACED, WIDTHS, Board, Bounds
from edgefl.core.errors import UserError
from edgefl.core.price import Demand
from edgefl.core.units import show_bytes
from edgefl.export.kernels import INT8, Costed, GraphCost
from edgefl.export.model import ExportForm, Graph, ModelFile, origin, read_model
from edgefl.export.timing import Measurement, Reference, profile, time_onnx, time_torch
from edgefl.planning.fleets import named
from edgefl.show.answers import Steps, quiet
from edgefl.show.onnx import BenchResult, BoardPrice, MeasuredCalls, OperatorTime, Predicted
from edgefl.store.folders import is_run
from edgefl.store.reader import read

SLOWEST = 10


@dataclass(frozen=True)
class BenchOptions:
    """What to measure and to predict.

    Attributes:
        threads: numbers of threads to measure on; none where only predictions are asked for.
        batch: samples per call.
        runs: calls that count.
        budget_s: seconds after which a measurement stops early.
        devices: to predict for; "all" is every one.
        dtype: the number type that devices compute in; see ``predictions``.
        run: the run that the model was exported from, to compare with PyTorch.
    """

    threads: Sequence[int] = (1,)
    batch: int = 1
    runs: int = 300
    budget_s: float = 30.0
    devices: Sequence[str] = ()
    dtype: str | None = None
    run: Path | None = None


def bench(
    path: Path,
    options: BenchOptions = BenchOptions(),
    call: Callable[..., Any] = fresh.call,
    progress: Steps = quiet,
) -> BenchResult:
    """Measures an ONNX model here and predicts it for devices.

    Raises:
        UserError: a name or the file is wrong, or the model cannot be run.
        RunError: a measuring process failed.
    """
    model = read_model(path)
    graph = Graph(model, options.batch)
    devices = predictions(graph, options.devices, options.batch, options.dtype)
    cost = GraphCost(graph)
    kernels, quantised = cost.kernels(), cost.quantised
    reference, missing = _reference(model, options.run)
    if options.threads:
        needed_bytes, free_bytes = sum(cost.memory()), psutil.virtual_memory().available
        if needed_bytes > free_bytes:
            raise UserError(
                f"a call of the model needs {show_bytes(needed_bytes)}, and this host has "
                f"{show_bytes(free_bytes)} free",
                where=str(path),
                hint="predict with --device and --predict-only, or use a smaller --batch",
            )
    measured, slowest = _measure(str(path), options, reference, call, progress)
    return BenchResult(
        model=str(path),
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        size_bytes=model.size_bytes,
        batch=options.batch,
        quantised=quantised,
        precision=model.facts.get("precision", INT8 if quantised else TRACED),
        flops=sum(one.kernel.flops for one in kernels),
        kernels=len(kernels),
        moved_bytes=sum(one.moved_bytes for one in kernels),
        memory=GraphCost(graph, options.dtype).memory(),
        measured=measured,
        pytorch=missing,
        slowest=slowest,
        devices=devices,
    )


def _measure(
    model: str, options: BenchOptions, reference: Reference | None, call: Callable[..., Any], progress: Steps
) -> tuple[list[MeasuredCalls], list[OperatorTime]]:
    if not options.threads:
        return [], []
    plain = Measurement(model, batch=options.batch, runs=options.runs, budget_s=options.budget_s)
    steps: list[tuple[str, Callable[[], MeasuredCalls]]] = []
    for threads in options.threads:
        one, suffix = replace(plain, threads=threads), f"{threads} {'thread' if threads == 1 else 'threads'}"
        steps.append((f"ONNX Runtime, {suffix}", partial(call, time_onnx, one, threads=threads)))
        if reference is not None:
            in_torch = partial(call, time_torch, one, reference, threads=threads)
            steps.append((f"PyTorch, {suffix}", in_torch))
    rows = []
    for place, (label, measured) in enumerate(steps):
        progress(label, place, len(steps) + 1)
        rows.append(measured())
    progress("operators", len(steps), len(steps) + 1)
    operators = call(profile, plain, threads=plain.threads)
    progress("", len(steps) + 1, len(steps) + 1)
    return rows, operators[:SLOWEST]


def _reference(model: ModelFile, run: Path | None) -> tuple[Reference | None, str]:
    """The PyTorch model that a file was exported from, or why it is not known.

    Raises:
        UserError: ``run`` is not the run that the file was exported from.
    """
    name, known = model.path.name, origin(model)
    if known is None:
        if run is not None:
            raise UserError(f"{name} does not say which run it was exported from", where="--run")
        return None, "the file does not say which run it was exported from"
    if run is not None and not is_run(run):
        raise UserError(f"{run} is not a run", where="--run")
    # A file in RUN/export/ finds its run.
    folder = run or model.path.resolve().parent.parent
    run_id = ""
    if is_run(folder):
        with read(folder) as reader:
            run_id = reader.meta["run_id"]
    if run_id == known.run_id:
        return Reference(folder, known.client, known.version, ExportForm.of(model.proto)), ""
    if run is not None:
        raise UserError(
            f"{name} was exported from run {known.run_id}, but {run} is run {run_id}",
            where="--run",
        )
    return None, f"name the run it was exported from (id {known.run_id}) with --run RUN"


def predictions(graph: Graph, names: Sequence[str], batch: int, dtype: str | None = None) -> list[Predicted]:
    """What one call takes on each device, or on every one for "all".

    ``dtype`` is the number type of everything; by default int8 for what is quantised and fp32 for the rest.

    Raises:
        UserError: a device or the cost of an operator is unknown.
    """
    devices = named(names, "--device")
    cost = GraphCost(graph, dtype)
    kernels, memory_bytes = cost.kernels(), sum(cost.memory())
    found = []
    for name, device in devices.items():
        usable_bytes, price, unknown = device.usable_memory_bytes, None, ""
        try:
            price = _price(name, device, kernels, batch)
        except UserError as error:
            unknown = error.what
        share = memory_bytes / usable_bytes if usable_bytes else None
        fits = None if usable_bytes is None else memory_bytes <= usable_bytes
        found.append(Predicted(name, device.category, unknown, price, memory_bytes, share, fits))
    return found


def _price(name: str, device: Board, kernels: Sequence[Costed], batch: int) -> BoardPrice:
    """The time and energy of the kernels.

    Raises:
        UserError: the device cannot price them.
    """
    works = _works(kernels, device.dtypes(inference=True))
    bounds = Bounds()
    for dtype, work in works.items():
        bounds = bounds.plus(device.clock(name, dtype, inference=True).time(work))
    return BoardPrice(
        dtype=" + ".join(works),
        figures=device.figures(),
        launch=device.launch_known(inference=True),
        seconds=bounds.seconds,
        bounds=bounds,
        images_per_s=batch / bounds.seconds if bounds.seconds else None,
        joules=known(Demand.working(bounds, device.power).working_j),
    )


def _works(kernels: Iterable[Costed], supported: Sequence[str]) -> dict[str, Work]:
    """The kernels by number type.

    Kernels without products (before the first quantised operator and after the last) are bytes in any type: a
    device that does not support theirs moves the same bytes.
    """
    kernels = list(kernels)
    with_products = {one.dtype for one in kernels if one.kernel.flops}
    works: dict[str, list[Kernel]] = {}
    for one in kernels:
        dtype, kernel = one.dtype, one.kernel
        if dtype not in supported and dtype not in with_products and with_products <= set(supported):
            dtype = supported[0]
            kernel = kernel._replace(bytes=kernel.bytes * WIDTHS[TRACED] // WIDTHS[dtype])
        works.setdefault(dtype, []).append(kernel)
    return {dtype: Work.of(one) for dtype, one in works.items()}
