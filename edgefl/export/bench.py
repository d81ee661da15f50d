"""How fast a model is: here, measured in fresh processes, and elsewhere, predicted by the devices' models."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.core.devices import TRACED
from edgefl.core.errors import RunError, UserError
from edgefl.export.kernels import INT8, GraphCost
from edgefl.export.model import Graph, ModelFile, read_model
from edgefl.export.predict import predictions
from edgefl.export.timing import Order
from edgefl.store import is_run, read

SLOWEST = 10

Tell = Callable[[str, int, int], None]
Run = Callable[[Order], dict[str, Any]]


@dataclass(frozen=True)
class Wish:
    """What to find out.

    Attributes:
        threads: several numbers to measure at; none at all where only predictions are wanted.
        batch: samples a call.
        runs: calls that count.
        budget_s: seconds after which a measurement stops earlier.
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


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_order(order: Order) -> dict[str, Any]:
    """Has a fresh process do an order.

    Raises:
        UserError: it cannot be done.
        RunError: the process failed.
    """
    threads = str(order.threads)
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-m", "edgefl.export.timing"],
        input=json.dumps(order.plain()),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise RunError(f"a measuring process failed: {last}", where="python -m edgefl.export.timing")
    found: dict[str, Any] = json.loads(done.stdout)
    if "error" in found:
        error = found["error"]
        raise UserError(error["what"], where=error["where"], hint=error["hint"])
    return found


def bench(
    path: Path,
    wish: Wish = Wish(),
    run: Run = run_order,
    tell: Tell = lambda label, done, of: None,  # noqa: ARG005 - a name for each
) -> dict[str, Any]:
    """Measures a model here and predicts it elsewhere.

    Args:
        path: an ONNX file.
        wish: what to find out.
        run: has an order done.
        tell: is called with (what comes now, measurements done, measurements in all).

    Returns:
        "model", "sha256", "size_bytes", "batch", "quantised", "precision" (the file's), "flops", "kernels",
        "moved_bytes", "memory" (bytes of "weights" and "activations"), "measured" (a dict a measurement),
        "pytorch" (why it is not compared with, or ""), "slowest" (operators) and "devices" (a dict a device).

    Raises:
        UserError: a name or the file is wrong, or the model cannot be run.
        RunError: a measuring process failed.
    """
    model = read_model(path)
    graph = Graph(model, wish.batch)
    rows = predictions(graph, wish.devices, wish.batch, wish.dtype)
    cost = GraphCost(graph)
    kernels, quantised = cost.kernels(), cost.quantised
    reference, missing = _reference(model, wish.run)
    steps = _steps(model, wish, reference)
    answers = []
    for place, (label, order) in enumerate(steps):
        tell(label, place, len(steps))
        answers.append((order, run(order)))
    tell("", len(steps), len(steps))
    return {
        "model": str(path),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "size_bytes": model.size_bytes,
        "batch": wish.batch,
        "quantised": quantised,
        "precision": model.facts.get("precision", INT8 if quantised else TRACED),
        "flops": sum(one.kernel.flops for one in kernels),
        "kernels": len(kernels),
        "moved_bytes": sum(one.moved_bytes for one in kernels),
        "memory": GraphCost(graph, wish.dtype).memory()._asdict(),
        "measured": [_measured(order, found) for order, found in answers if not order.profile],
        "pytorch": missing,
        "slowest": [row for order, found in answers if order.profile for row in found["nodes"][:SLOWEST]],
        "devices": rows,
    }


def _steps(model: ModelFile, wish: Wish, reference: dict[str, Any] | None) -> list[tuple[str, Order]]:
    """The measurements, each with its label."""
    if not wish.threads:
        return []
    plain = Order(str(model.path), batch=wish.batch, runs=wish.runs, budget_s=wish.budget_s)
    found = []
    for threads in wish.threads:
        order, word = replace(plain, threads=threads), "thread" if threads == 1 else "threads"
        found.append((f"ONNX Runtime, {threads} {word}", order))
        if reference:
            found.append((f"PyTorch, {threads} {word}", replace(order, run=reference)))
    return [*found, ("operators", replace(plain, profile=True))]


def _measured(order: Order, found: dict[str, Any]) -> dict[str, Any]:
    seconds = np.array(found["seconds"])
    return {
        "runtime": found["runtime"],
        "threads": order.threads,
        "load_s": found["load_s"],
        **{f"p{share}_s": float(np.percentile(seconds, share)) for share in (50, 90, 99)},
        "images_per_s": order.batch * len(seconds) / float(seconds.sum()),
        "peak_bytes": found["peak_bytes"],
        "core_share": found["core_share"],
        "warmup": found["warmup"],
        "runs": len(seconds),
        "stopped_early": len(seconds) < order.runs,
    }


def _reference(model: ModelFile, run: Path | None) -> tuple[dict[str, Any] | None, str]:
    """Where PyTorch's side of a model is, or why it is nowhere.

    Raises:
        UserError: the run that was named is not the one.
    """
    facts = model.facts
    if "run_id" not in facts:
        if run is not None:
            raise UserError(f"{model.path.name} does not say which run it was exported from", where="--run")
        return None, "the file does not say which run it was exported from"
    folder = run or _around(model.path)
    if folder is None:
        return None, f"name the run it was exported from (id {facts['run_id']}) with --run RUN"
    found = _run_id(folder)
    if found != facts["run_id"]:
        if run is None:
            return None, f"name the run it was exported from (id {facts['run_id']}) with --run RUN"
        raise UserError(
            f"{model.path.name} was exported from another run: its id is {facts['run_id']}, "
            f"that of {folder} is {found}",
            where="--run",
        )
    names = [one.name for one in model.proto.graph.input]
    outputs = [one.name for one in model.proto.graph.output]
    form = {"raw_input": "pixels" in names, "softmax": "probabilities" in outputs}
    reference = {"folder": str(folder), "client": facts["client"], "version": facts["version"], "form": form}
    return reference, ""


def _around(path: Path) -> Path | None:
    """The run in whose ``export/`` folder a file lies."""
    folder = path.resolve().parent.parent
    return folder if is_run(folder) else None


def _run_id(folder: Path) -> str:
    """A run's id.

    Raises:
        UserError: the folder is no run.
    """
    if not is_run(folder):
        raise UserError(f"{folder} is no run", where="--run")
    with read(folder) as reader:
        return str(reader.meta["run_id"])
