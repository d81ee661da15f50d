"""Chooses the fastest engine for a run on this machine by a short measurement, which is cached.

The same work on the same machine always gets the same engine, because another would give other last bits.
Work is the same if the resolved scenario, except for its seed, and the code on ``EDGEFL_PATH`` are. The
measurement is kept in ``engines.json`` in the user's cache folder and in the run's ``host.json``.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import platform
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import numpy as np
import torch

from edgefl.compute.job import Engine
from edgefl.core import catalogue, seeds
from edgefl.core.caches import cache_folder
from edgefl.core.errors import RunError, UserError
from edgefl.core.event import Job
from edgefl.core.files import atomically
from edgefl.core.host import cores, processor
from edgefl.core.params import Component
from edgefl.core.plan import Prices
from edgefl.runs.context import Context

# Target wall seconds for measuring one candidate.
SHORT_S = 0.25
# Expected training time from which worker processes are worth starting.
LONG_S = 30.0
# How much faster workers must be: the measurement is noisy.
CLEARLY = 1.1
MOST_STACKED = 64
_KEPT = 500
# A run that another limit ends is taken to be as long.
_ROUNDS = 100


def choose(context: Context, params: Any) -> tuple[Component, dict[str, Any]]:
    """The engine for a context's run, from the cache or by measuring.

    Args:
        context: before anything was learned.
        params: of engine "auto".

    Returns:
        Its name and parameters, and the measurement for ``host.json``.
    """
    path, key = cache_folder() / "engines.json", signature(context, params)
    known = _read(path)
    if not _sound(known.get(key)):
        component, measured = _measured(context, params)
        known[key] = {"engine": component.model_dump(), "measured": measured}
        _write(path, dict(list(known.items())[-_KEPT:]))
        return component, {"auto": {**known[key], "kept": False}}
    return Component.model_validate(known[key]["engine"]), {"auto": {**known[key], "kept": True}}


def signature(context: Context, params: Any) -> str:
    """A hash of the work, the code on ``EDGEFL_PATH``, the machine and the libraries."""
    work = {key: value for key, value in context.planned.resolved["scenario"].items() if key != "seed"}
    machine = {
        "processor": processor() or platform.machine(),
        "cores": cores(),
        "device": _device_name(context.builder.device),
        "libraries": {name: installed(name) for name in ("torch", "numpy", "edgefl-emulator")},
    }
    code = [
        {name: hashlib.sha256(content).hexdigest() for name, content in files.items() if name.endswith(".py")}
        for files in catalogue.user_files()
    ]
    text = json.dumps([work, code, machine, params.model_dump(mode="json")], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _measured(context: Context, params: Any) -> tuple[Component, dict[str, Any]]:
    """The fastest engine, and each candidate's seconds per client step."""
    start = time.perf_counter()
    cohort = _cohort(context, _heaviest(context))
    step_s = {"loop": _step_s(_engine("loop", {"device": params.device}, context), cohort[:1])}
    group = {"group": min(MOST_STACKED, len(cohort))}
    common = {"device": params.device, "state_memory": f"{params.state_memory:.0f} B"}
    notes: dict[str, Any] = {}
    # Keeps the measurement short.
    together = min(MOST_STACKED, len(cohort), int(SHORT_S / step_s["loop"]))
    if together > 1:
        try:
            step_s["vmapped"] = _step_s(_engine("vmapped", common | group, context), cohort[:together])
        except Exception as error:  # noqa: BLE001 - a user's method may do what vmap cannot
            notes["vmapped"] = f"{type(error).__name__}: {error}".splitlines()[0]
    else:
        notes["vmapped"] = "not tried: one client's step takes too long"
    best = min(step_s, key=step_s.__getitem__)
    component = Component(name=best, **common, **(group if best == "vmapped" else {}))
    workers = min(params.workers or cores(), len(cohort))
    expected_s = _client_steps(context) * step_s[best]
    if context.builder.device.type == "cpu" and workers > 1 and expected_s > LONG_S:
        workers_of = {**common, "workers": workers, "inner": best}
        if best == "vmapped":
            workers_of["group"] = min(MOST_STACKED, -(-len(cohort) // workers))
        step_s["processes"] = _step_s(_engine("processes", workers_of, context), cohort)
        if step_s["processes"] * CLEARLY < step_s[best]:
            component = Component(name="processes", **workers_of)
    return component, {
        "client_step_s": step_s,
        "expected_train_s": expected_s,
        "notes": notes,
        "took_s": time.perf_counter() - start,
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
    }


def _engine(name: str, settings: dict[str, Any], context: Context) -> Engine:
    module = catalogue.load("engines", name)
    engine: Engine = module.build(module.Params.model_validate(settings), context)
    return engine


def _step_s(engine: Engine, jobs: Sequence[Job]) -> float:
    """Wall seconds per client step, after a step to warm up."""
    try:
        once = _timed(engine, jobs, 1)
        once = min(once, _timed(engine, jobs, 1))
        longest = max(job.steps for job in jobs)
        limit = max(1, min(longest, int(SHORT_S / max(once, 1e-6))))
        took = _timed(engine, jobs, limit)
    finally:
        engine.close()
    return took / sum(min(limit, job.steps) for job in jobs)


def _timed(engine: Engine, jobs: Sequence[Job], limit: int) -> float:
    start = time.perf_counter()
    for _ in engine.outcomes(jobs, limit=limit):
        pass
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def _heaviest(context: Context) -> Prices:
    """The exchange that takes the most steps over the run."""
    plan = context.planned.plan
    return max(
        plan.prices, key=lambda prices: _times(context, prices) * prices.steps[plan.clients.kind].sum()
    )


def _times(context: Context, prices: Prices) -> int:
    rounds = context.planned.plan.scenario.server.until.rounds or _ROUNDS
    return rounds // prices.every if prices.at == "round" else 1


def _cohort(context: Context, prices: Prices) -> list[Job]:
    """Jobs like an exchange's first ones in the run."""
    plan = context.planned.plan
    clients = np.flatnonzero(plan.clients.admitted).tolist()
    count = len(clients) if prices.everyone else plan.scenario.server.participants or len(clients)
    return [
        Job(
            place,
            client,
            prices.exchange,
            0,
            0,
            0,
            seeds.derive(plan.scenario.seed, "probe", client=client),
            int(prices.steps[plan.clients.kind[client]]),
        )
        for place, client in enumerate(clients[:count])
    ]


def _client_steps(context: Context) -> float:
    """About how many steps all clients take over the run."""
    table = context.planned.plan.prices
    return float(
        sum(_times(context, each) * sum(job.steps for job in _cohort(context, each)) for each in table)
    )


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def _read(path: Path) -> dict[str, Any]:
    """The cached choices; none if the file is missing or damaged."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _sound(entry: Any) -> bool:
    """Whether a cached entry names an engine that can be built."""
    try:
        component = Component.model_validate(entry["engine"])
        catalogue.load("engines", component.name).Params.model_validate(component.params)
    except (KeyError, TypeError, ValueError, UserError):
        return False
    return True


def _write(path: Path, known: dict[str, Any]) -> None:
    # Without a writable cache, the next run measures again.
    with suppress(OSError, RunError):
        path.parent.mkdir(parents=True, exist_ok=True)
        atomically(path, json.dumps(known, indent=1).encode())
