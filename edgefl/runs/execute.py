"""Executes one run in its directory: from its beginning, or from where it was."""

import json
import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import psutil
import torch

from edgefl.analysis.summary import summary
from edgefl.compute.process import keep_freed_memory
from edgefl.core.errors import EdgeflError, RunError, UserError
from edgefl.core.files import atomically
from edgefl.core.host import processor
from edgefl.core.notes import note
from edgefl.core.user_code import InternalError, WrongValueError, as_run_error
from edgefl.planning.plan import Planned
from edgefl.runs.context import Context
from edgefl.runs.describing import describe
from edgefl.runs.engines import EngineOptions, started
from edgefl.runs.learner import Learner
from edgefl.runs.past import Past
from edgefl.runs.provenance import differences, provenance, trainers, versions
from edgefl.runs.run import RunInProgress
from edgefl.runs.states import States
from edgefl.store.checkpoints import Checkpoint
from edgefl.store.reader import Reader, read
from edgefl.store.writer import Store
from edgefl.trackers import Began, Callbacks, End

TRACEBACK = "traceback.txt"


@dataclass(frozen=True)
class Execution:
    """A run that is to be executed.

    Attributes:
        folder: its directory, in which it was planned or begun.
        meta: facts about what there is of it; empty where it begins.
        checkpoint: where it goes on; None where it begins, or begins again.
        longer: whether it is to be longer than it was planned.
    """

    planned: Planned
    folder: Path
    options: EngineOptions
    meta: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: Checkpoint | None = None
    longer: bool = False


def prepare(planned: Planned, folder: Path, options: EngineOptions, data_dir: Path | None) -> None:
    """Makes a run's directory with all that is known before it begins.

    Args:
        data_dir: the folder of dataset files; None for the default.

    Raises:
        RunError: it cannot be written; nothing is left of it.
    """
    facts = {
        "data_dir": None if data_dir is None else str(data_dir.resolve()),
        "engine_asked": options.written(),
        "checkpoint_minutes": planned.plan.scenario.checkpoint.minutes,
        "provenance": provenance(planned),
    }
    with Store.planned(folder) as store:
        store.set_meta(facts)
        describe(planned, store, options.params.name)


def execute(execution: Execution, began: Began, callbacks: Callbacks) -> tuple[str, str]:
    """Executes a run to its end.

    Returns:
        "done" or "failed", and why it failed.
    """
    start, rss_bytes = time.perf_counter(), psutil.Process().memory_info().rss
    plan, folder = execution.planned.plan, execution.folder
    try:
        store = Store.open(folder)
    except RunError as error:
        callbacks.began(began)
        callbacks.ended(End(began.name, "failed", str(error), -1, 0.0, dict))
        return "failed", str(error)
    run = RunInProgress(plan, store, None, callbacks, minutes=plan.scenario.checkpoint.minutes)
    run.longer = execution.planned if execution.longer else None
    if execution.checkpoint is None:
        run.afresh = bool(execution.meta)
    else:
        # It was found whole before.
        run.past = Past(Reader(folder, trusted=True), execution.checkpoint)
    try:
        callbacks.began(began)
        status, reason, host = _ended(run, execution)
    except BaseException as error:
        # Not an Exception: somebody stopped the run, and what was saved is valid.
        status = "failed" if isinstance(error, Exception) else "interrupted"
        reason = str(error) if isinstance(error, EdgeflError) else type(error).__name__
        if run.untouched:
            run.abandon()
        else:
            with suppress(RunError):
                run.flush()
            with suppress(RunError):
                store.close(status, reason=reason)
        _tell_end(run, status, reason)
        raise
    if run.untouched:
        run.abandon()
    else:
        wall_s = time.perf_counter() - start + execution.meta.get("host_wall_s", 0.0)
        _write_host(folder, {**host, "host_wall_s": wall_s, "memory": _memory(rss_bytes)})
        try:
            store.close(status, reason=reason, host_wall_s=wall_s)
        except RunError as error:
            status, reason = "failed", reason or str(error)
    _tell_end(run, status, reason)
    return status, reason


def _tell_end(run: RunInProgress, status: str, reason: str) -> None:
    place, name = run.so_far.place, run.plan.scenario.name
    figures = cache(partial(_figures, run.store.folder))
    run.callbacks.ended(End(name, status, reason, place.round, place.t_s, figures))


def _figures(folder: Path) -> dict[str, float]:
    """Those of a run that has ended; none where it cannot be read: on a full disk, say."""
    with suppress(UserError), read(folder) as reader:
        return dict(summary(reader).numbers)
    return {}


def _ended(run: RunInProgress, execution: Execution) -> tuple[str, str, dict[str, Any]]:
    """Runs to the end; returns the status, the reason, and facts for ``host.json``."""
    host: dict[str, Any] = {"engine": {"name": execution.options.params.name}}
    try:
        run.plan.check_admitted()
        if execution.options.trains:
            _train(run, execution, host)
        else:
            run.to_end()
        _forget_trace(run.store.folder)
    except BaseException as error:
        if isinstance(error, UserError) and not isinstance(error, WrongValueError):
            raise
        told = as_run_error(error)
        # Not an Exception and not of a user's code: somebody stopped the run.
        if isinstance(told, InternalError) and not isinstance(error, Exception):
            raise
        if not run.untouched:
            with suppress(RunError):
                run.flush()
        return "failed", _reason(run.store.folder, told), host
    return "done", "", host


def _reason(folder: Path, error: EdgeflError) -> str:
    """Why a run failed; its traceback, if it has one, goes to a file."""
    reason = str(error)
    _forget_trace(folder)
    if not error.trace:
        return reason
    with suppress(RunError):
        atomically({folder / TRACEBACK: error.trace.encode(errors="replace")})
        reason += f"\n  trace: {TRACEBACK} in the run's directory"
    return reason


def _forget_trace(folder: Path) -> None:
    """Removes the traceback of a failure before the run was resumed."""
    with suppress(OSError):
        (folder / TRACEBACK).unlink()


def _train(run: RunInProgress, execution: Execution, host: dict[str, Any]) -> None:
    """Runs to the end with training; adds the engine and its times to ``host``."""
    keep_freed_memory()
    options = execution.options
    states = States(run.store.folder / "states", int(options.params.state_memory))
    context = Context(execution.planned, states, options.device)
    start = started(options, context)
    try:
        host["engine"] = start.facts
        # Which bits a result has depends on these; it is known before the first merge.
        facts = {
            "engine": start.facts["name"],
            "engine_used": start.chosen,
            "trainer": start.trainer,
            "provenance": provenance(execution.planned, context.builder.device),
        }
        if execution.meta:
            facts["resumed"] = _resumed(execution, facts)
        run.store.set_meta(facts)
        run.so_far.engine = start.line
        run.learner = Learner(context, start.engine)
        host["host_s"] = run.learner.host_s
        run.to_end()
    finally:
        start.engine.close()


def _resumed(execution: Execution, now: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Where a run was resumed, and what was different from then on; this time's is noted."""
    then, place = execution.meta, execution.checkpoint.place.version if execution.checkpoint else 0
    found = differences(then.get("provenance", {}), now["provenance"])
    found += trainers(then.get("trainer") or now["trainer"], now["trainer"])
    for line in found:
        note(f"{execution.folder.name}: {line}; last bits may differ from version {place} on")
    return [*then.get("resumed", []), {"version": place, "differences": found}]


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
    libraries = dict(versions())
    facts = {
        **facts,
        "threads": 1,
        "cores": psutil.cpu_count(),
        "processor": processor(),
        "memory_bytes": psutil.virtual_memory().total,
        "platform": platform.platform(),
        "python": libraries.pop("python"),
        "libraries": libraries,
    }
    # A full disk, or somebody's folder of that name: the run is as good without.
    with suppress(RunError):
        atomically({folder / "host.json": json.dumps(facts, indent=2).encode()})
