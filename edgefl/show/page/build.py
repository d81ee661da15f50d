"""Reads runs and makes a page of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeVar

from edgefl.analysis.curves import axes, curves
from edgefl.analysis.explain.path import critical_paths
from edgefl.analysis.groups import Group as Seeds
from edgefl.analysis.groups import Judged, fronts, judged, seeds_together
from edgefl.analysis.history import History, histories
from edgefl.analysis.metrics import metrics
from edgefl.analysis.published import beside_runs
from edgefl.analysis.run import Run
from edgefl.analysis.sensitivity import Dependence, dependence, ordered
from edgefl.analysis.settings import differing, fleet_name
from edgefl.analysis.summary import Summary, each_run, summary, target_of
from edgefl.core.host import version
from edgefl.planning.sensitivity import check_factor
from edgefl.show.colours import styles
from edgefl.show.compare import every_row, few, pair_table, scales, signs
from edgefl.show.page.records import Group, Page, RunHead, Sweep, SweepFigure
from edgefl.show.page.sections.activity import Activity, activity
from edgefl.show.page.sections.costs import costs
from edgefl.show.page.sections.durations import Durations, durations
from edgefl.show.page.sections.measures import MeasureSeries, measures
from edgefl.show.page.sections.memory import Memory, memory
from edgefl.show.page.sections.participation import Participation, participation
from edgefl.show.page.sections.partition import Partition, partition
from edgefl.show.page.sections.provenance import (
    FleetSources,
    Provenance,
    fleet_sources,
    provenance,
)
from edgefl.show.page.sections.rounds import Rounds, rounds
from edgefl.show.page.sections.shared import shared
from edgefl.store import Reader, runs_in

# Jobs that all rounds of all runs list together, which bounds the page's size.
_MOST_JOBS = 100_000

Record = TypeVar("Record")


@dataclass(frozen=True)
class _Run:
    """What is read of one run."""

    summary: Summary
    histories: dict[str, History]
    devices: dict[str, int]
    links: dict[str, int]
    durations: list[Durations]
    rounds: list[Rounds]
    activity: list[Activity]
    participation: list[Participation]
    memory: list[Memory]
    partition: Partition
    measures: list[MeasureSeries]
    fleet: FleetSources
    provenance: Provenance


def page(
    folders: list[Path],
    target: float | str | None = None,
    *,
    note: Callable[[str], None] | None = None,
    live: bool = False,
    sensitivity: float | None = None,
) -> Page:
    """The page of some runs.

    Args:
        folders: runs or groups.
        target: as of ``summary.target_of``.
        note: as in ``summary.each_run``.
        live: whether it follows runs in progress, which this process writes.
        sensitivity: a factor, to say whether the order of the runs holds over all that their devices' numbers
            may be; see ``show.sensitivity``.

    Raises:
        UserError: as ``summary.each_run``, or the target or the factor is out of range.
    """
    accuracy = target_of(target, folders)
    if sensitivity is not None:
        check_factor(sensitivity)
    most_jobs = _MOST_JOBS // sum(len(runs_in(folder)) for folder in folders)
    left_out: list[str] = []
    read = each_run(
        folders,
        lambda reader, place: _run(reader, place, accuracy, most_jobs),
        trusted=live,
        note=note and partial(_noted, left_out, note),
    )
    compared = seeds_together([run.summary for run in read])
    apart = pair_table(compared, every_row(compared))
    depends = None if sensitivity is None else dependence(compared, sensitivity)
    figures = _figures(compared, depends)
    histories_of = {id(run.summary): run.histories for run in read}
    drawn = curves(compared, lambda one: histories_of[id(one)])
    return Page(
        title=_title(folders),
        edgefl=version(),
        live=live,
        axes=axes(drawn),
        runs=_heads(read, compared),
        groups=_groups([run.summary for run in read], compared),
        scales=scales([run.summary for run in read]),
        warnings=[*left_out, *few(compared)],
        figures=figures,
        dependence=depends,
        pairs=apart,
        signs=[note.text for note in signs(compared, apart)],
        curves=drawn,
        costs=costs(compared),
        sweep=_sweep(figures, compared),
        published=beside_runs(compared),
        durations=_all(run.durations for run in read),
        rounds=_all(run.rounds for run in read),
        activity=_all(run.activity for run in read),
        participation=_all(run.participation for run in read),
        memory=_all(run.memory for run in read),
        partition=shared(run.partition for run in read),
        measures=_all(run.measures for run in read),
        fleets=shared(run.fleet for run in read),
        provenance=[run.provenance for run in read],
    )


def _figures(groups: Sequence[Seeds], depends: Dependence | None) -> list[Judged]:
    """All figures, and who is ahead in those that are judged."""
    found = metrics([run for one in groups for run in one.runs])
    return [
        ordered(judged(metric, groups), groups, depends)
        if metric.judged
        else Judged(metric, [metric.value(one.runs) for one in groups])
        for metric in found
    ]


def _sweep(figures: Sequence[Judged], groups: Sequence[Seeds]) -> Sweep:
    if len(groups) == 1:
        return Sweep({}, [])
    return Sweep(
        {
            one.metric.key: SweepFigure(
                one.metric.label, one.metric.unit, [value.mean if value else None for value in one.values]
            )
            for one in figures
            if one.metric.cost or (one.metric.judged and one.metric.key.startswith("accuracy."))
        },
        list(fronts(groups)),
    )


def _noted(lines: list[str], note: Callable[[str], None], line: str) -> None:
    lines.append(line)
    note(line)


def _run(reader: Reader, run: int, target: float | None, most_jobs: int) -> _Run:
    found = Run(reader)
    one = summary(found, target)
    return _Run(
        summary=one,
        histories=histories(found),
        devices=_counted(reader, "device"),
        links=_counted(reader, "link"),
        durations=durations(found, run, one.rounds),
        rounds=rounds(found, critical_paths(found), run, most_jobs),
        activity=activity(found, run, one.virtual_s),
        participation=participation(found, run, one.clients - one.refused),
        memory=memory(reader, run),
        partition=partition(reader, run),
        measures=measures(reader, run),
        fleet=fleet_sources(reader, run),
        provenance=provenance(reader, run),
    )


def _counted(reader: Reader, column: str) -> dict[str, int]:
    """How many clients have each value of a column."""
    rows = reader.query(f"SELECT {column}, COUNT(*) AS clients FROM clients GROUP BY 1 ORDER BY 1")  # noqa: S608 - ours
    return {row[column]: row["clients"] for row in rows}


def _all(records: Iterable[Sequence[Record]]) -> list[Record]:
    return list(chain.from_iterable(records))


def _title(folders: Sequence[Path]) -> str:
    """The folders' names."""
    return ", ".join(dict.fromkeys(folder.resolve().name for folder in folders))


def _heads(read: Sequence[_Run], compared: Sequence[Seeds]) -> list[RunHead]:
    group_of = {id(run): place for place, one in enumerate(compared) for run in one.runs}
    return [_head(run, group_of[id(run.summary)]) for run in read]


def _head(run: _Run, group: int) -> RunHead:
    one = run.summary
    return RunHead(
        name=one.name,
        group=group,
        method=one.method,
        dataset=one.dataset,
        seed=one.seed,
        status=one.status,
        reason=one.reason,
        run_dir=one.run_dir,
        run_id=one.run_id,
        engine=one.engine,
        rounds=one.rounds,
        clients=one.clients,
        refused=one.refused,
        devices=run.devices,
        links=run.links,
        fleet=fleet_name(one.settings or {}),
    )


def _groups(runs: Sequence[Summary], compared: Sequence[Seeds]) -> list[Group]:
    place_of = {id(run): place for place, run in enumerate(runs)}
    settings = differing([one.settings for one in compared])
    shown = styles([one.name for one in compared])
    return [
        Group(
            name=one.name,
            runs=[place_of[id(run)] for run in one.runs],
            colour=colour,
            dash=dash,
            settings={key: values[place] for key, values in settings.items()},
        )
        for place, (one, (colour, dash)) in enumerate(zip(compared, shown, strict=True))
    ]
