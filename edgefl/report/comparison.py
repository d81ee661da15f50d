"""Runs side by side, as tables that fit a terminal of 100 columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from edgefl.core.units import show_bytes, show_flops, show_joules, show_seconds
from edgefl.report.summary import DryRun, Reached, Summary
from edgefl.report.tables import MISSING, UNKNOWN, energy, figures, named
from edgefl.report.waiting import Lost

# Devices with rows of what was lost to them.
_MOST_WAITED = 3

# Runs in one table; more go into further tables.
_ABREAST = 4

Row = tuple[str, Callable[[Summary], str]]


def comparison(runs: Sequence[Summary]) -> RenderableType:
    """A column for each run, a row for each figure."""
    if len({run.name for run in runs}) < len(runs):
        runs = [replace(run, name=f"{run.name}\n{_group(run)}, seed {run.seed}") for run in runs]
    blocks = [runs[start : start + _ABREAST] for start in range(0, len(runs), _ABREAST)]
    unfinished = [_unfinished(run) for run in runs if run.status != "done"]
    return Group(*(_table(block, _rows(block)) for block in blocks), *unfinished)


def _group(run: Summary) -> str:
    """The folder that distinguishes runs of one name."""
    folder = Path(run.run_dir)
    return folder.parent.name if re.match(r"\d\d-", folder.name) else folder.name


def _unfinished(run: Summary) -> Text:
    name = run.name.replace("\n", ", ")
    if run.status == "failed":
        return Text(f"{name} failed: {run.reason}", style="red")
    state = "was interrupted" if run.status == "interrupted" else "is still running, or was killed"
    return Text(f"{name} {state}: these are its figures so far", style="yellow")


def _table(runs: Sequence[Summary], rows: Iterable[Row]) -> Table:
    return figures(["", *(run.name for run in runs)], ([label, *map(cell, runs)] for label, cell in rows))


def _rows(runs: Sequence[Summary]) -> Iterator[Row]:
    yield from _differences(runs)
    yield "accuracy, global", lambda run: _accuracy(run, "global")
    yield "accuracy, personal", lambda run: _accuracy(run, "personal")
    if any(map(_evaluated, runs)):
        yield "  of clients", _evaluated
    after = next((run.after_rounds for run in runs if run.after_rounds), None)
    if after and any(score.before is not None for run in runs for score in run.accuracy.values()):
        yield f"  before {after}, both", _before
    yield "virtual time", lambda run: show_seconds(run.virtual_s)
    yield "bytes down", lambda run: show_bytes(run.down_bytes)
    yield "bytes up", lambda run: show_bytes(run.up_bytes)
    for part in dict.fromkeys(part for run in runs for part in run.bytes_by_part):
        yield f"  {part}, down / up", lambda run, part=part: _part(run, part)  # type: ignore[misc]
    yield "work of all clients", lambda run: show_flops(run.flops)
    yield "energy of all clients", lambda run: energy(run.energy)
    if any(run.energy.joules for run in runs):
        yield "  compute / radio / tail / idle", _phases
    yield "peak device memory", lambda run: show_bytes(run.peak_bytes) if run.peak_bytes else MISSING
    if any(run.refused for run in runs):
        yield "clients refused", lambda run: f"{run.refused} of {run.clients}"
    yield from _to_target(runs)
    yield from _usage(runs)
    yield from _waited(runs)
    yield "host time", lambda run: show_seconds(run.host_s) if run.host_s is not None else MISSING


def _differences(runs: Sequence[Summary]) -> Iterator[Row]:
    """Data, models and clients, where runs differ in them: their figures then compare different work."""
    rows: list[Row] = [
        ("data", lambda run: run.dataset or MISSING),
        ("model", lambda run: ", ".join(run.models)),
        ("clients", lambda run: str(run.clients)),
    ]
    for label, cell in rows:
        if len(set(map(cell, runs))) > 1:
            yield label, cell


def _accuracy(run: Summary, model: str) -> str:
    score = run.accuracy.get(model)
    if score is None:
        return MISSING
    return f"{score.value:.1%}" + ("" if score.spread is None else f" ±{score.spread:.1%}")


def _evaluated(run: Summary) -> str:
    """How many clients the mean of personal accuracies covers, unless it is all, and all of them trained."""
    score = run.accuracy.get("personal")
    if score is None or (score.clients == run.clients and not score.untrained):
        return ""
    return f"{score.clients} of {run.clients}, {score.untrained} untrained"


def _before(run: Summary) -> str:
    scores = [run.accuracy.get(model) for model in ("global", "personal")]
    before = [score.before for score in scores if score and score.before is not None]
    return " / ".join(f"{accuracy:.1%}" for accuracy in before) or MISSING


def _part(run: Summary, part: str) -> str:
    moved = run.bytes_by_part.get(part)
    return f"{show_bytes(moved.down)} / {show_bytes(moved.up)}" if moved else MISSING


def _phases(run: Summary) -> str:
    whole, phases = run.energy.joules, run.joules_by_phase
    if not whole:
        return MISSING
    parts = (phases["compute"], phases["receive"] + phases["transmit"], phases["tail"], phases["idle"])
    return " / ".join(f"{joules / whole:.0%}" for joules in parts)


def _to_target(runs: Sequence[Summary]) -> Iterator[Row]:
    """What it took to reach the target accuracies, if any run has one."""
    targets = {run.target.accuracy for run in runs if run.target}
    if not targets:
        return
    name = f"{targets.pop():.0%}" if len(targets) == 1 else "its target"
    if name == "its target":
        yield "target", lambda run: f"{run.target.accuracy:.0%}" if run.target else MISSING

    def row(label: str, personal: bool, show: Callable[[Reached], str]) -> Row:  # noqa: FBT001 - which model
        def cell(run: Summary) -> str:
            reached = run.target and (run.target.personal if personal else run.target.global_)
            return show(reached) if reached else MISSING

        return f"{label} to {name}, {'personal' if personal else 'global'}", cell

    personal = any("personal" in run.accuracy for run in runs)
    yield row("time", False, lambda reached: show_seconds(reached.t_s))
    if personal:
        yield row("time", True, lambda reached: show_seconds(reached.t_s))
    yield row("bytes", personal, lambda reached: show_bytes(reached.bytes))
    yield row("energy", personal, lambda reached: energy(reached.energy))


def _usage(runs: Sequence[Summary]) -> Iterator[Row]:
    """How busy clients were, what of their work was wasted if any was, and what else stopped a run."""
    yield "utilisation", lambda run: MISSING if run.utilisation is None else f"{run.utilisation:.0%}"
    if any(run.fairness is not None and run.fairness < 1 for run in runs):
        yield "participation, fairness", _participation
    if any(run.wasted.jobs for run in runs):
        yield (
            "jobs merged / late / lost / cut",
            lambda run: " / ".join(f"{part.jobs:,}" for part in run.spent.values()),
        )
        yield "wasted bytes", lambda run: _wasted(show_bytes, run.wasted.bytes, run.down_bytes + run.up_bytes)
        yield "wasted work", lambda run: _wasted(show_flops, run.wasted.flops, run.flops)
        yield "wasted energy", lambda run: _wasted(show_joules, run.wasted.joules, run.energy.joules)
        yield "wasted client time", lambda run: _wasted(show_seconds, run.wasted.client_s, run.client_s)
    if any(map(_stopped, runs)):
        yield "stopped by", lambda run: _stopped(run) or "rounds"


def _participation(run: Summary) -> str:
    if run.fairness is None:
        return MISSING
    return f"{run.merged_clients:,} of {run.clients - run.refused:,}, {run.fairness:.2f}"


def _wasted(show: Callable[[Any], str], wasted: float | None, whole: float | None) -> str:
    """A wasted quantity and its share of the whole."""
    if wasted is None:
        return UNKNOWN
    return f"{show(wasted)} ({wasted / whole:.0%})" if wasted and whole else show(wasted)


def _stopped(run: Summary) -> str:
    """What stopped the run before its last round, if anything did."""
    return run.stopped if run.stopped and run.stopped != "rounds" else ""


def _waited(runs: Sequence[Summary]) -> Iterator[Row]:
    """What was lost to the devices that cost most, and to which of its parts."""
    lost_s: Counter[str] = Counter()
    for run in runs:
        lost_s.update({one.device: one.lost.lost_s for one in run.waited_for_devices})
    for device, _ in lost_s.most_common(_MOST_WAITED):
        yield f"waited for {device}", lambda run, device=device: _lost(run, device)  # type: ignore[misc]
        yield (
            "  link/compute/slowdown/jitter",
            lambda run, device=device: _lost_parts(run, device),  # type: ignore[misc]
        )


def _lost_to(run: Summary, device: str) -> Lost | None:
    return next((one.lost for one in run.waited_for_devices if one.device == device), None)


def _lost(run: Summary, device: str) -> str:
    lost = _lost_to(run, device)
    return f"{show_seconds(lost.lost_s)} ({lost.lost_s / run.virtual_s:.0%})" if lost else show_seconds(0)


def _lost_parts(run: Summary, device: str) -> str:
    lost = _lost_to(run, device)
    if lost is None:
        return MISSING
    parts = lost.link_s, lost.compute_s, lost.slowdown_s, lost.jitter_s
    return " / ".join(f"{part / lost.lost_s:.0%}" for part in parts)


def dry_runs(runs: Sequence[DryRun]) -> RenderableType:
    """A row for each dry run; below, in a column for each run that wasted work or was stopped, how much."""
    heads = ("scenario", "run", "clients", "refused", "rounds", "virtual time", "bytes", "energy")
    rows = [_dry_row(run) for run in runs]
    noted = [
        run.summary if run.scenario == run.summary.name else replace(run.summary, name=_titled(run))
        for run in runs
        if run.summary.wasted.jobs or _stopped(run.summary)
    ]
    blocks = [noted[start : start + _ABREAST] for start in range(0, len(noted), _ABREAST)]
    return Group(named("", rows, heads), *(Group("", _table(block, _usage(block))) for block in blocks))


def _titled(run: DryRun) -> str:
    """A run's name below its scenario's."""
    return f"{run.scenario}\n{run.summary.name}"


def _dry_row(run: DryRun) -> tuple[str, ...]:
    found = run.summary
    return (
        run.scenario,
        found.name,
        str(found.clients),
        str(found.refused),
        MISSING if found.rounds is None else str(found.rounds),
        show_seconds(found.virtual_s),
        show_bytes(found.down_bytes + found.up_bytes),
        energy(found.energy),
    )
