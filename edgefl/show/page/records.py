"""What a report page is made of: what is known of its runs, and sections of plots and plain texts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from edgefl.analysis.groups import Judged, SeedGroup
from edgefl.analysis.run import Run
from edgefl.analysis.sensitivity import Dependence
from edgefl.analysis.summary import Summary
from edgefl.show.compare import PairTable, energy_of
from edgefl.show.page.frames import Plot
from edgefl.show.table import listed
from edgefl.show.values import setting_text


class TableCell(NamedTuple):
    """A cell of a table.

    Attributes:
        value: what it is sorted by; None for its text.
        sign: a sign behind the text, such as that of the best.
        meaning: of the sign, for those who do not see it.
        part: whether it is the label of a part of the row before.
    """

    text: str
    value: float | None = None
    sign: str = ""
    meaning: str = ""
    below: str = ""
    part: bool = False


@dataclass(frozen=True)
class PageTable:
    """A table; the first cell of each row says what the row is.

    Attributes:
        caption: what it shows; unique in the page.
        sorts: whether its rows can be sorted; figures of several units cannot.
        folded: whether it is shown on demand alone.
        many: whether its columns are narrow, since there are many.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[TableCell]]
    sorts: bool = True
    folded: bool = False
    many: bool = False


ABREAST = 4
"""Groups that have a column each; more have a row each."""


def across(
    caption: str, groups: Sequence[str], labels: Sequence[str], cells: Sequence[Sequence[TableCell]]
) -> PageTable:
    """Figures of groups: a column for each group, or a row for each where there are many.

    Args:
        labels: the figures' names; one that begins with spaces is a part of the last that does not.
        cells: for each figure, each group's.
    """
    if len(groups) <= ABREAST:
        heads = [TableCell(label.strip(), part=label.startswith(" ")) for label in labels]
        rows = [[head, *row] for head, row in zip(heads, cells, strict=True)]
        return PageTable(caption, ["figure", *groups], rows, sorts=False)
    rows = [[TableCell(name), *(row[place] for row in cells)] for place, name in enumerate(groups)]
    return PageTable(caption, ["run", *_whole(labels)], rows, many=True)


def _whole(labels: Sequence[str]) -> Iterator[str]:
    """The labels, each part with what it is a part of."""
    whole = ""
    for label in labels:
        part = label.startswith(" ")
        whole = whole if part else label
        yield f"{whole}: {label.strip()}" if part else label


# Characters of a name that a table shows; the data have all of them.
_LONGEST = 200


def shortened(text: str, longest: int = _LONGEST) -> str:
    """A name, or another text, as far as a table shows it."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def once(texts: Iterable[str], most: int = 6) -> str:
    """Each text once; of many, how many more there are."""
    found = list(map(shortened, dict.fromkeys(texts)))
    return listed(found, most, "; " if any("," in text for text in found) else ", ")


def setting(value: Any, key: str) -> str:
    """A setting's value as far as a table shows it, given its dotted key."""
    return "not set" if value is None else shortened(setting_text(value, key)) or "empty"


def rounds_cell(run: Summary) -> str:
    """How many rounds a run had."""
    return "not finished" if run.rounds is None else f"{run.rounds:,}"


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
    groups: Sequence[SeedGroup]
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
    some = [f"{one.line} {of}" for one in told.groups if (of := energy_of(one))]
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
