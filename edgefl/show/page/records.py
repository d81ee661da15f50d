"""What a report page shows, as one record that text and pictures are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgefl.analysis.curves import Axis, Curve
from edgefl.analysis.groups import Front, Judged
from edgefl.analysis.published import Beside
from edgefl.analysis.sensitivity import Dependence
from edgefl.show.compare import PairTable
from edgefl.show.page.sections.activity import Activity
from edgefl.show.page.sections.costs import Costs
from edgefl.show.page.sections.durations import Durations
from edgefl.show.page.sections.measures import MeasureSeries
from edgefl.show.page.sections.memory import Memory
from edgefl.show.page.sections.participation import Participation
from edgefl.show.page.sections.partition import Partition
from edgefl.show.page.sections.provenance import FleetSources, Provenance
from edgefl.show.page.sections.rounds import Rounds


@dataclass(frozen=True)
class RunHead:
    """What a run is.

    Attributes:
        name, method, dataset, seed, status, reason, run_dir, run_id, engine, rounds, clients, refused: as in
            ``Summary``.
        group: the place of its group.
        devices: how many clients have each.
        links: how many clients have each.
        fleet: the fleet's name or title; empty where it has none.
    """

    name: str
    group: int
    method: str
    dataset: str | None
    seed: int
    status: str
    reason: str
    run_dir: str
    run_id: str
    engine: str
    rounds: int | None
    clients: int
    refused: int
    devices: Mapping[str, int]
    links: Mapping[str, int]
    fleet: str


@dataclass(frozen=True)
class Group:
    """A run, or several that differ in nothing but their seeds.

    Attributes:
        name: a heading; it may have two lines.
        runs: their places.
        colour: "#rrggbb"; see ``report.colours.styles``.
        dash: a line's style in Plotly's words.
        settings: those in which groups differ, by dotted key; see ``report.differing``.
    """

    name: str
    runs: Sequence[int]
    colour: str
    dash: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class SweepFigure:
    """A figure of all groups, as ``Metric`` has it.

    Attributes:
        values: each group's mean; None where it has none, and where it is of some of the clients alone.
    """

    label: str
    unit: str
    values: Sequence[float | None]


@dataclass(frozen=True)
class Sweep:
    """What became of the groups; without anything where there is one group alone.

    Attributes:
        figures: accuracies and what whole runs took, by key.
        fronts: for each evaluated model and each cost that two groups have.
    """

    figures: Mapping[str, SweepFigure]
    fronts: Sequence[Front]


DRAWN = (
    "title", "edgefl", "live", "axes", "runs", "groups", "curves", "costs", "sweep", "published", "durations",
    "rounds", "activity", "participation", "memory", "partition", "measures",
)  # fmt: skip
"""What of a page its scripts read; the rest is text."""


@dataclass(frozen=True)
class Page:
    """A report page. Records name their run by ``run`` and their group by ``group``: places in these lists.

    Attributes:
        title: of what.
        edgefl: the version that made it.
        live: whether it follows runs in progress.
        axes: what curves are drawn against, by their keys in ``Curve.x``.
        runs: every run.
        groups: see ``Group``.
        scales: the scales at which runs were made, in one line if any; see ``comparison.scales``.
        warnings: what to beware of in the figures, a line each.
        figures: all figures of the groups, and who is ahead in those that are judged.
        dependence: whether that holds on other numbers of the devices; None where it was not asked for.
        pairs: what groups of seeds are above others; None where there is nothing to compare.
        signs: what the signs in figures mean, and what figures count.
        curves: accuracy and loss against what was spent, by group and model.
        costs: by group.
        sweep: accuracies and costs of the groups.
        published: what papers report, beside the groups.
        durations, rounds, activity, participation, memory, measures, provenance: by run.
        partition, fleets: of runs that share them.
    """

    title: str
    edgefl: str
    live: bool
    axes: Mapping[str, Axis]
    runs: Sequence[RunHead]
    groups: Sequence[Group]
    scales: Sequence[str]
    warnings: Sequence[str]
    figures: Sequence[Judged]
    dependence: Dependence | None
    pairs: PairTable | None
    signs: Sequence[str]
    curves: Sequence[Curve]
    costs: Sequence[Costs]
    sweep: Sweep
    published: Sequence[Beside]
    durations: Sequence[Durations]
    rounds: Sequence[Rounds]
    activity: Sequence[Activity]
    participation: Sequence[Participation]
    memory: Sequence[Memory]
    partition: Sequence[Partition]
    measures: Sequence[MeasureSeries]
    fleets: Sequence[FleetSources]
    provenance: Sequence[Provenance]
