"""One run: the world asks, the learner answers, the store keeps."""

from __future__ import annotations

import json
import math
import platform
import sqlite3
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import psutil
import torch

from edgefl.compute.evaluate import Personal, Scores
from edgefl.compute.heap import keep_freed_memory
from edgefl.core.errors import EdgeflError, RunError, UserError, in_one_line
from edgefl.core.event import Event, JobRecord
from edgefl.core.files import atomically
from edgefl.core.ledger import Ledger
from edgefl.planning.plan import Planned
from edgefl.protocol import write_tree
from edgefl.runs.callbacks import Callbacks
from edgefl.runs.context import Context
from edgefl.runs.engines import Wanted, started
from edgefl.runs.learner import Learner, mean_scalars
from edgefl.runs.states import States
from edgefl.store import Store
from edgefl.world.driver import converse, simulate
from edgefl.world.needs import Evaluate, Feedback, Merge, Need

TRACEBACK = "traceback.txt"


@dataclass
class Run:
    """One run in progress.

    Attributes:
        planned: what is run.
        store: where it is kept.
        learner: who learns; None on the null engine.
        callbacks: called as runs progress.
    """

    planned: Planned
    store: Store
    learner: Learner | None
    callbacks: Callbacks
    ledger: Ledger = field(default_factory=Ledger)
    _server_events: list[Event] = field(default_factory=list)
    _jobs: list[JobRecord] = field(default_factory=list)
    _best: float = -1.0

    def to_end(self) -> None:
        """Runs the world to its end.

        Raises:
            RunError: training diverged.
        """
        converse(simulate(self.planned.plan, self._emit, self._jobs.append), self._answer)
        self.flush()
        self.store.commit()

    def check_admitted(self) -> None:
        """Sees to it that somebody can work, before anything is measured or trained.

        Raises:
            RunError: no client was admitted.
        """
        if not self.planned.plan.clients.admitted.any():
            raise RunError(
                f"every client was refused: {self.planned.plan.refusals[0]}",
                hint="use a smaller model, batch_size: fit, or a fleet with more memory",
            )

    def _answer(self, need: Need) -> Feedback:
        return self._merge(need) if isinstance(need, Merge) else self._evaluate(need)

    def _emit(self, event: Event) -> None:
        self.ledger.add(event)
        if event.job < 0:
            self._server_events.append(event)

    def flush(self) -> None:
        """Hands the server's events, and the jobs that ended, to the store."""
        self.store.add_events(self._server_events)
        self.store.add_jobs(self._jobs)
        self._server_events.clear()
        self._jobs.clear()

    def _merge(self, need: Merge) -> Feedback:
        start = time.perf_counter()
        scalars = {} if self.learner is None else self.learner.merge(need)
        means = mean_scalars(need, scalars)
        row = {
            "version": need.version,
            "exchange": need.exchange,
            "round": need.round,
            "t_s": need.t_s,
            "jobs": len(need.merged),
            "slowest_client": need.slowest,
            "loss": means.get("loss"),
            "live_versions": json.dumps(need.live_versions),
            "host_s": time.perf_counter() - start,
        }
        self.flush()
        self.store.add_scalars(scalars)
        self.store.add("merges", row)
        self.store.commit()
        self.callbacks.merged(need.round, need.t_s, means.get("loss"))
        return Feedback(jobs=scalars)

    def _evaluate(self, need: Evaluate) -> Feedback:
        if self.learner is None:
            return Feedback()
        start = time.perf_counter()
        found, own = self.learner.evaluate(need.version)
        shared = {
            "version": need.version,
            "round": need.round,
            "t_s": need.t_s,
            "down_bytes": self.ledger.down_bytes,
            "up_bytes": self.ledger.up_bytes,
            **self.ledger.energy._asdict(),
            "host_s": time.perf_counter() - start,
        }
        accuracies = self._keep(shared, found, own)
        best = max(accuracies.get("global", -1.0), accuracies.get("personal", -1.0) if not found else -1.0)
        self.flush()
        with self.learner.context.states.saving() as states:
            server = self.learner.context.versions[need.version]
            self.store.checkpoint(need.version, server, states, best=best > self._best)
        self._best = max(self._best, best)
        self.callbacks.evaluated(accuracies)
        return Feedback(scores=accuracies)

    def _keep(
        self, shared: Mapping[str, Any], found: Scores | None, own: Personal | None
    ) -> dict[str, float]:
        """Writes an evaluation's rows; returns the accuracies by model."""
        accuracies = {}
        losses = [
            float(scores.loss.mean()) for scores in (found, own) if scores is not None and len(scores.loss)
        ]
        if not all(map(math.isfinite, losses)):
            raise RunError(
                f"training diverged: the loss on test data is {losses[0]} after round {shared['round'] + 1}",
                hint="lower local.optimizer.lr, or set local.optimizer.clip_norm",
            )
        if found is not None:
            accuracies["global"] = found.accuracy
            row = {"model": "global", "accuracy": found.accuracy, "loss": float(found.loss.mean())}
            self.store.add("evaluations", {**shared, **row})
        if own is not None and own.clients:
            accuracies["personal"] = float(own.accuracy.mean())
            row = {
                "model": "personal",
                "accuracy": accuracies["personal"],
                "loss": float(own.loss.mean()),
                "spread": float(own.accuracy.std()),
                "clients": len(own.clients),
                "untrained": own.untrained,
            }
            self.store.add("evaluations", {**shared, **row})
            for client, accuracy, samples in zip(own.clients, own.accuracy, own.samples, strict=True):
                one = {
                    "version": shared["version"],
                    "client": client,
                    "accuracy": float(accuracy),
                    "samples": int(samples),
                }
                self.store.add("client_evaluations", one)
        return accuracies


def execute(
    planned: Planned, folder: Path, wanted: Wanted, callbacks: Callbacks, data_dir: Path | None = None
) -> tuple[str, str]:
    """Does one run in a fresh directory.

    Args:
        planned: what to run.
        folder: the run directory to make.
        wanted: the engine.
        callbacks: called as runs progress.
        data_dir: where the dataset's files were looked for, for the record; None for the default place.

    Returns:
        "done" or "failed", and why it failed.
    """
    start, rss_bytes = time.perf_counter(), psutil.Process().memory_info().rss
    plan = planned.plan
    store = Store.create(folder, write_tree)
    facts = {
        "name": plan.scenario.name,
        "method": plan.scenario.method.name,
        "dataset": plan.scenario.task.dataset.name,
        "run_id": planned.run_id,
        "seed": plan.scenario.seed,
        "engine": wanted.component.name,
        "rounds": plan.scenario.server.rounds,
        "assumed": list(plan.assumed),
        "target": plan.scenario.evaluate.target,
        "evaluated_on": plan.scenario.evaluate.on,
    }
    store.set_meta(facts)
    store.write_plan(plan, planned.resolved, [len(part) for part in planned.learning.federation.test_parts])
    callbacks.started(plan.scenario.name, plan.scenario.server.rounds, folder)
    run = Run(planned, store, None, callbacks)
    try:
        status, reason, host = _ended(run, wanted)
        wall_s = time.perf_counter() - start
        where = None if data_dir is None else str(data_dir.resolve())
        facts = {"host_wall_s": wall_s, "memory": _memory(rss_bytes), "data_dir": where}
        _write_host(folder, {**host, **facts})
        store.close(status, reason=reason, host_wall_s=wall_s)
    except sqlite3.OperationalError as error:
        # A full disk, say: what was committed stays, and the next run may lie on a better one.
        store.abandon()
        status, reason = "failed", f"cannot write {folder}: {error}"
    except BaseException as error:
        run.flush()
        # What is no Exception is somebody's wish to stop: what was saved is as good as it was.
        ended = "failed" if isinstance(error, Exception) else "interrupted"
        store.close(ended, reason=str(error) if isinstance(error, EdgeflError) else type(error).__name__)
        raise
    callbacks.ended(plan.scenario.name, status, reason)
    return status, reason


def _ended(run: Run, wanted: Wanted) -> tuple[str, str, dict[str, Any]]:
    """Runs to the end; the status it comes to, why, and what ``host.json`` says about it."""
    host: dict[str, Any] = {"engine": {"name": wanted.component.name}}
    try:
        run.check_admitted()
        if wanted.trains:
            _train(run, wanted, host)
        else:
            run.to_end()
    except (UserError, sqlite3.OperationalError):
        raise
    except Exception as error:  # noqa: BLE001 - a method of the user's own may raise anything
        run.flush()
        return "failed", _reason(run.store.folder, error), host
    return "done", "", host


def _reason(folder: Path, error: Exception) -> str:
    """Why a run failed, without the traceback of code that is not ours: it goes to a file of its own."""
    if isinstance(error, RunError):
        reason, trace = str(error), "\n".join(getattr(error, "__notes__", ()))
    else:
        reason, trace = in_one_line(error), "".join(traceback.format_exception(error))
    if not trace:
        return reason
    with suppress(RunError):
        atomically(folder / TRACEBACK, trace.encode())
        reason += f"\n  trace: {TRACEBACK} in the run's directory"
    return reason


def _train(run: Run, wanted: Wanted, host: dict[str, Any]) -> None:
    """Runs to the end with real training; fills in who trained, and for how long."""
    keep_freed_memory()
    states = States(run.store.folder / "states", int(wanted.params.state_memory))
    context = Context(run.planned, states, wanted.device)
    engine, host["engine"] = started(wanted, context)
    run.learner = Learner(context, engine)
    host["host_s"] = run.learner.host_s
    try:
        run.to_end()
    finally:
        engine.close()


def _memory(before_bytes: int) -> dict[str, int]:
    """This process's memory in bytes: resident, what the run added to it, and what a GPU held at most.

    Freed memory is kept for the next round, so the difference bounds what training needs from above; see
    ``edgefl profile --measure-memory`` for one job in a process of its own.
    """
    now = psutil.Process().memory_info().rss
    found = {"rss_bytes": now, "rss_added_bytes": now - before_bytes}
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        found["cuda_peak_bytes"] = max(map(torch.cuda.max_memory_allocated, range(torch.cuda.device_count())))
    return found


def _write_host(folder: Path, facts: Mapping[str, Any]) -> None:
    """What the result must not depend on: the machine, its libraries and its times."""
    facts = {
        **facts,
        "threads": 1,
        "cores": psutil.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "platform": platform.platform(),
        "python": platform.python_version(),
        "libraries": {
            name: installed(name) for name in ("torch", "torchvision", "numpy", "simpy", "edgefl-emulator")
        },
    }
    atomically(folder / "host.json", json.dumps(facts, indent=2).encode())
