"""What a report page shows, as one record that text and pictures are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgefl.show.curves import Axis, Curve
from edgefl.show.dependence import Dependence
from edgefl.show.page.sections.activity import Activity
from edgefl.show.page.sections.costs import Costs
from edgefl.show.page.sections.devices import DeviceEnergy
from edgefl.show.page.sections.durations import Durations
from edgefl.show.page.sections.figures import Figures
from edgefl.show.page.sections.measures import MeasureSeries
from edgefl.show.page.sections.memory import Memory
from edgefl.show.page.sections.participation import Participation
from edgefl.show.page.sections.partition import Partition
from edgefl.show.page.sections.provenance import FleetSources, Provenance
from edgefl.show.page.sections.rounds import Rounds
from edgefl.show.page.sections.sweep import Sweep
from edgefl.show.pairs import PairTexts
from edgefl.show.published import Beside
from edgefl.show.verdict import Verdict


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
        verdict: who is ahead.
        dependence: whether that holds on other numbers of the devices; None where it was not asked for.
        figures: all figures of the groups.
        pairs: what groups of seeds are above others.
        signs: what the signs in figures mean, and what figures count.
        curves: accuracy and loss against what was spent, by group and model.
        costs: by group.
        devices: by group and device.
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
    verdict: Sequence[Verdict]
    dependence: Dependence | None
    figures: Sequence[Figures]
    pairs: PairTexts
    signs: Sequence[str]
    curves: Sequence[Curve]
    costs: Sequence[Costs]
    devices: Sequence[DeviceEnergy]
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
