"""Executes one run: passes the world's needs to the learner, and results to the store."""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

from edgefl.compute.evaluate import Personal, Scores
from edgefl.compute.heap import keep_freed_memory
from edgefl.core.errors import EdgeflError, RunError, UserError
from edgefl.core.event import ServerEvent
from edgefl.core.files import atomically
from edgefl.core.host import processor
from edgefl.core.user_code import InternalError, as_run_error
from edgefl.planning.plan import Planned
from edgefl.protocol import write_tree
from edgefl.runs.callbacks import Callbacks
from edgefl.runs.context import Context
from edgefl.runs.describing import describe
from edgefl.runs.engines import EngineOptions, started
from edgefl.runs.learner import Learner, mean_scalars
from edgefl.runs.so_far import SoFar
from edgefl.runs.states import States
from edgefl.store import Store
from edgefl.world.driver import converse, simulate
from edgefl.world.needs import Evaluate, Feedback, Merge, Need
from edgefl.world.table import stacked

TRACEBACK = "traceback.txt"

# Without training, so many ended jobs are written and committed at a time.
_ROWS = 1000


@dataclass
class Run:
    """One run in progress.

    Attributes:
        planned: what is run.
        store: its directory.
        learner: trains and scores; None on the null engine.
        callbacks: called as runs progress.
    """

    planned: Planned
    store: Store
    learner: Learner | None
    callbacks: Callbacks
    _server_events: list[ServerEvent] = field(default_factory=list)
    _merges: list[dict[str, Any]] = field(default_factory=list)
    _jobs: list[np.ndarray] = field(default_factory=list)
    _tails: list[np.ndarray] = field(default_factory=list)
    _best: float = -1.0

    def __post_init__(self) -> None:
        self._so_far = SoFar(self.planned.plan, self.callbacks)

    def to_end(self) -> None:
        """Runs the world to its end.

        Raises:
            RunError: training diverged.
        """
        # Training's scalars are added to the rows of jobs that are there.
        at_least = _ROWS if self.learner is None else 1
        world = simulate(
            self.planned.plan,
            self._server_events.append,
            self._jobs.append,
            settled=self._tails.append,
            at_least=at_least,
            ledger=self._so_far.ledger,
        )
        ended = converse(world, self._answer)
        self.flush()
        self.store.set_meta({"rounds": ended.rounds, "stopped": ended.by, "virtual_s": ended.t_s})
        if self.learner is not None and self.learner.observer is not None:
            self.store.set_meta({"measures_host_s": self.learner.host_s["measure"]})
        self.store.commit()
        self._so_far.over(ended.t_s)

    def _answer(self, need: Need) -> Feedback:
        return self._merge(need) if isinstance(need, Merge) else self._evaluate(need)

    def flush(self) -> None:
        """Moves the server's events, the ended jobs and the settled tails to the store."""
        self.store.add_events(self._server_events)
        self.store.add("merges", *self._merges)
        if self._jobs:
            names = [prices.exchange for prices in self.planned.plan.prices]
            self.store.add_jobs(stacked(self._jobs), names)
        for tails in self._tails:
            self.store.add_tails(tails)
        self._server_events.clear()
        self._merges.clear()
        self._jobs.clear()
        self._tails.clear()

    def _merge(self, need: Merge) -> Feedback:
        start = time.perf_counter()
        scalars = {} if self.learner is None else self.learner.merge(need)
        means = mean_scalars(need, scalars)
        row = {
            "version": need.version,
            "exchange": need.exchange,
            "round": need.round,
            "t_s": need.t_s,
            "jobs": len(need.rows),
            "slowest_client": need.slowest,
            "loss": means.get("loss"),
            "live_versions": json.dumps(need.live_versions),
            "host_s": time.perf_counter() - start,
        }
        self._merges.append(row)
        if self._jobs or scalars:
            self.flush()
            self.store.add_scalars(scalars)
            self.store.commit()
        self._so_far.merged(need.version, need.round, need.t_s, means.get("loss"))
        return Feedback(jobs=scalars)

    def _evaluate(self, need: Evaluate) -> Feedback:
        if self.learner is None:
            return Feedback()
        start = time.perf_counter()
        scalars = self.learner.complete(need)
        global_scores, personal_scores = self.learner.evaluate(need.version)
        self._check_finite(need, global_scores, personal_scores)
        common = {
            "version": need.version,
            "round": need.round,
            "t_s": need.t_s,
            "down_bytes": need.totals.down_bytes,
            "up_bytes": need.totals.up_bytes,
            **need.totals.energy._asdict(),
            "host_s": time.perf_counter() - start,
        }
        accuracies, losses = self._add_scores(common, global_scores, personal_scores)
        self.store.add("measures", *self.learner.measure(need, personal_scores))
        best = accuracies.get("global" if global_scores else "personal", -1.0)
        self.flush()
        self.store.add_scalars(scalars)
        with self.learner.context.states.saving() as states:
            server = self.learner.context.versions[need.version]
            self.store.checkpoint(need.version, server, states, best=best > self._best)
        self._best = max(self._best, best)
        self._so_far.evaluated(need.t_s, accuracies, losses)
        return Feedback(jobs=scalars, scores=accuracies)

    def _check_finite(self, need: Evaluate, *scores: Scores | Personal | None) -> None:
        losses = [float(each.loss.mean()) for each in scores if each is not None and len(each.loss)]
        broken = [loss for loss in losses if not math.isfinite(loss)]
        if broken:
            raise RunError(
                f"training diverged: the loss on test data is {broken[0]} after merge {need.version}",
                hint="lower local.optimizer.lr, or set local.optimizer.clip_norm",
            )

    def _add_scores(
        self, common: Mapping[str, Any], global_scores: Scores | None, personal_scores: Personal | None
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Adds an evaluation's rows, which share ``common``; returns accuracies and losses by model."""
        accuracies, losses = {}, {}
        if global_scores is not None:
            accuracies["global"] = global_scores.accuracy
            losses["global"] = float(global_scores.loss.mean())
            row = {"accuracy": accuracies["global"], "loss": losses["global"]}
            self.store.add("evaluations", {**common, "model": "global", **row})
        if personal_scores is not None and personal_scores.clients:
            accuracies["personal"] = float(personal_scores.accuracy.mean())
            losses["personal"] = float(personal_scores.loss.mean())
            row = {
                "accuracy": accuracies["personal"],
                "loss": losses["personal"],
                "spread": float(personal_scores.accuracy.std()),
                "clients": len(personal_scores.clients),
                "untrained": personal_scores.untrained,
            }
            self.store.add("evaluations", {**common, "model": "personal", **row})
            columns = personal_scores.accuracy.tolist(), personal_scores.samples.tolist()
            self.store.add_client_scores(
                common["version"], zip(personal_scores.clients, *columns, strict=True)
            )
        return accuracies, losses


def execute(
    planned: Planned,
    folder: Path,
    options: EngineOptions,
    callbacks: Callbacks,
    data_dir: Path | None = None,
) -> tuple[str, str]:
    """Executes one run in a new directory.

    Args:
        planned: what to run.
        folder: the run directory to create.
        options: the engine.
        callbacks: called as runs progress.
        data_dir: the folder of dataset files, for ``host.json``; None for the default.

    Returns:
        "done" or "failed", and why it failed.
    """
    start, rss_bytes = time.perf_counter(), psutil.Process().memory_info().rss
    name = planned.plan.scenario.name
    try:
        store = Store.create(folder, write_tree)
    except RunError as error:
        # A full disk, say: the next run may be on another one.
        status, reason = "failed", str(error)
    else:
        run = Run(planned, store, None, callbacks)
        try:
            status, reason, host = _described(run, options, folder)
        except BaseException as error:
            # Not an Exception: somebody stopped the run, and what was saved is valid.
            ended = "failed" if isinstance(error, Exception) else "interrupted"
            reason = str(error) if isinstance(error, EdgeflError) else type(error).__name__
            if not store.begun:
                store.abandon()
                raise
            with suppress(RunError):
                run.flush()
            with suppress(RunError):
                store.close(ended, reason=reason)
            raise
        wall_s = time.perf_counter() - start
        if store.begun:
            where = None if data_dir is None else str(data_dir.resolve())
            facts = {"host_wall_s": wall_s, "memory": _memory(rss_bytes), "data_dir": where}
            _write_host(folder, {**host, **facts})
        try:
            store.close(status, reason=reason, host_wall_s=wall_s)
        except RunError as error:
            status, reason = "failed", reason or str(error)
    callbacks.ended(name, status, reason)
    return status, reason


def _described(run: Run, options: EngineOptions, folder: Path) -> tuple[str, str, dict[str, Any]]:
    """Writes the plan and runs to the end; see ``_ended``."""
    try:
        describe(run.planned, run.store, options.component.name)
    except RunError as error:
        return "failed", str(error), {}
    scenario = run.planned.plan.scenario
    run.callbacks.started(scenario.name, scenario.server.until.rounds, folder)
    return _ended(run, options)


def _ended(run: Run, options: EngineOptions) -> tuple[str, str, dict[str, Any]]:
    """Runs to the end; returns the status, the reason, and facts for ``host.json``."""
    host: dict[str, Any] = {"engine": {"name": options.component.name}}
    try:
        run.planned.plan.check_admitted()
        if options.trains:
            _train(run, options, host)
        else:
            run.to_end()
    except UserError:
        raise
    except BaseException as error:
        told = as_run_error(error)
        # Not an Exception and not of a user's code: somebody stopped the run.
        if isinstance(told, InternalError) and not isinstance(error, Exception):
            raise
        with suppress(RunError):
            run.flush()
        return "failed", _reason(run.store.folder, told), host
    return "done", "", host


def _reason(folder: Path, error: EdgeflError) -> str:
    """Why a run failed; its traceback, if it has one, goes to a file."""
    reason = str(error)
    if not error.trace:
        return reason
    with suppress(RunError):
        atomically(folder / TRACEBACK, error.trace.encode(errors="replace"))
        reason += f"\n  trace: {TRACEBACK} in the run's directory"
    return reason


def _train(run: Run, options: EngineOptions, host: dict[str, Any]) -> None:
    """Runs to the end with training; adds the engine and its times to ``host``."""
    keep_freed_memory()
    states = States(run.store.folder / "states", int(options.params.state_memory))
    context = Context(run.planned, states, options.device)
    start = started(options, context)
    host["engine"] = start.facts
    # Which bits a result has depends on these; it is known before the first merge.
    run.store.set_meta({"engine": start.facts["name"], "trainer": start.trainer})
    run.callbacks.engine(start.line)
    run.learner = Learner(context, start.engine)
    host["host_s"] = run.learner.host_s
    try:
        run.to_end()
    finally:
        start.engine.close()


def _memory(before_bytes: int) -> dict[str, int]:
    """This process's memory in bytes: resident, added by the run, and a GPU's peak.

    Freed memory is kept for the next round, so the difference is an upper bound of what training needs;
    ``edgefl profile --measure-memory`` measures one job in its own process.
    """
    now = psutil.Process().memory_info().rss
    memory = {"rss_bytes": now, "rss_added_bytes": now - before_bytes}
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        memory["cuda_peak_bytes"] = max(
            map(torch.cuda.max_memory_allocated, range(torch.cuda.device_count()))
        )
    return memory


def _write_host(folder: Path, facts: Mapping[str, Any]) -> None:
    """Writes what no result depends on: the machine, its libraries and its times."""
    facts = {
        **facts,
        "threads": 1,
        "cores": psutil.cpu_count(),
        "processor": processor(),
        "memory_bytes": psutil.virtual_memory().total,
        "platform": platform.platform(),
        "python": platform.python_version(),
        "libraries": {
            name: installed(name) for name in ("torch", "torchvision", "numpy", "simpy", "edgefl-emulator")
        },
    }
    # A full disk, or somebody's folder of that name: the run is as good without.
    with suppress(RunError):
        atomically(folder / "host.json", json.dumps(facts, indent=2).encode())
