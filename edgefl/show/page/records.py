"""What a report page is made of: what is known of its runs, and the sections that show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from edgefl.analysis.groups import Judged, SeedGroup, spreads
from edgefl.analysis.run import Run
from edgefl.analysis.sensitivity import Dependence
from edgefl.analysis.summary import Summary
from edgefl.show.compare import PairTable, energy_of
from edgefl.show.page.cells import PageTable, shortened
from edgefl.show.page.frames import Plot


class Read(NamedTuple):
    """A run while it is open, its place among all, and how many of its jobs are listed."""

    run: Run
    summary: Summary
    place: int
    most_jobs: int


@dataclass(frozen=True)
class RunHead:
    """What a run is: its figures, the place of its group, and how many clients have each device and link."""

    summary: Summary
    group: int
    devices: Mapping[str, int]
    links: Mapping[str, int]


@dataclass(frozen=True)
class PageGroup:
    """A run, or several that differ in nothing but their seeds.

    Attributes:
        name: a heading; it may have two lines.
        runs: their places.
    """

    name: str
    runs: Sequence[int]
    colour: str
    dash: str
    seeds: SeedGroup

    @property
    def line(self) -> str:
        return self.name.replace("\n", ", ")

    @cached_property
    def means(self) -> Mapping[str, float]:
        """The figures of the runs that have them, by dotted key."""
        return {key: found.mean for key, found in spreads(self.seeds.runs).items()}


@dataclass(frozen=True)
class Told:
    """What is known of all runs.

    Attributes:
        runs, groups: all; others name them by their places.
        settings: those in which groups differ, by dotted key: their values in order.
        warnings: what to beware of in the figures, a line each.
        figures: all figures of the groups, and who is ahead in those that are judged.
        dependence: whether that holds on other numbers of the devices; None where it was not asked for.
        pairs: what groups of seeds are above others; None where there is nothing to compare.
        signs: what the signs in figures mean, and what figures count.
    """

    runs: Sequence[RunHead]
    groups: Sequence[PageGroup]
    settings: Mapping[str, Sequence[Any]]
    warnings: Sequence[str]
    figures: Sequence[Judged]
    dependence: Dependence | None
    pairs: PairTable | None
    signs: Sequence[str]

    @property
    def names(self) -> list[str]:
        """The groups' names, as far as tables show them."""
        return [shortened(group.name) for group in self.groups]

    def run_name(self, run: int) -> str:
        """A run's name in one line; runs of one group differ by their seeds."""
        group = self.groups[self.runs[run].group]
        return f"{group.line}, seed {self.runs[run].summary.seed}" if len(group.runs) > 1 else group.line


def partly(told: Told) -> str:
    """Which groups' energy is that of some clients; empty where all know theirs."""
    some = [f"{one.line} {of}" for one in told.groups if (of := energy_of(one.seeds))]
    return f"The energy is that of some clients: {'; '.join(some)}." if some else ""


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        id, title: its address in the page, and its heading.
        facts: texts by label.
        warnings: what must not be overlooked.
        notes: what the tables' signs mean.
        texts: long texts by title, folded.
    """

    id: str
    title: str
    plots: Sequence[Plot] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    tables: Sequence[PageTable] = ()
    notes: Sequence[str] = ()
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def nothing(self) -> str:
        """Why its plots have nothing to show; empty where one has something, or there is none."""
        if not self.plots or any(plot.frame.blocks for plot in self.plots):
            return ""
        return self.plots[0].nothing[0].upper() + self.plots[0].nothing[1:]


@dataclass(frozen=True)
class Page:
    """A report page: its title, the version that made it, and whether it follows runs in progress."""

    title: str
    edgefl: str
    live: bool
    told: Told
    sections: Sequence[Section]
