"""Replays of runs: what the same learning costs on several fleets, and where it costs least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rich.console import Group as Rendered
from rich.console import RenderableType

from edgefl.analysis.groups import judged, runs_of, seeds_together
from edgefl.analysis.metrics import main_model, metrics
from edgefl.analysis.summary import Summary
from edgefl.core.documents import INLINE
from edgefl.show.compare import Comparison, about_seeds, by_run, marks, texts
from edgefl.show.table import Line, Table


class ReplaySource(NamedTuple):
    """Where the learning of a replay comes from: the run that trained."""

    run_dir: str
    name: str
    run_id: str
    event_hash: str | None


@dataclass(frozen=True)
class Replayed:
    """A replay's figures, and the fleet it was replayed on: the run's own where no other was named."""

    fleet: str
    source: ReplaySource
    summary: Summary = field(metadata={INLINE: Summary})


@dataclass(frozen=True)
class NotReplayed:
    """A run that cannot be replayed on a fleet (None: its own), and the first merge that would differ."""

    run_dir: str
    fleet: str | None
    reason: str


@dataclass(frozen=True)
class Replays:
    """The document that ``edgefl replay --json`` prints: that of ``edgefl run --json``, and more.

    Attributes:
        group_dir: where they are saved; None where they are not.
        runs: in the place of the comparison's own.
    """

    group_dir: str | None
    comparison: Comparison = field(metadata={INLINE: Comparison})
    runs: Sequence[Replayed]
    refused: Sequence[NotReplayed]


def replays_table(runs: Sequence[Replayed], given: Sequence[str] = ()) -> RenderableType:
    """A row for each run, or each average over seeds, on each fleet, where the best ones are marked.

    ``given`` are the settings that all have in place of their runs' own, in words.
    """
    fleets: dict[str, list[Summary]] = {}
    for run in runs:
        # By the names and directories of the runs that trained.
        trained = replace(run.summary, name=run.source.name, run_dir=run.source.run_dir)
        fleets.setdefault(run.fleet, []).append(trained)
    groups = {fleet: seeds_together(found) for fleet, found in fleets.items()}
    each = [one for found in groups.values() for one in found]
    of_all, averaged = runs_of(each), len(runs) > len(each)
    model = main_model(of_all)
    every = [metric for metric in metrics(of_all) if metric.main and metric.judged]
    kept = [metric for metric in every if metric.cost or metric.model == model]
    shown = [metric for metric in kept if "wasted" not in metric.key]
    verdicts, cells = [], []
    for fleet, found in groups.items():
        verdicts.append([judged(metric, found) for metric in shown])
        columns = [texts(metric, found, bounds=False) for metric in shown]
        table = by_run(found, columns, verdicts[-1], seeds=averaged)
        cells += [[fleet, *row] for row in table.rows]
    notes = [f"all with {', '.join(given)}"] if given else []
    notes += marks([one for found in verdicts for one in found], "best on its fleet")
    notes += about_seeds(each)
    return Rendered(Table(["fleet", *table.heads], cells, names=2), *(Line(note, "dim") for note in notes))
