"""Plots as data: frames of columns with titles and units, and what is drawn of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Block = Mapping[str, Any]
"""Some rows: a value that all of them share, or a list with each row's, by column.

Besides columns a block may have ``run`` or ``group``, whose it is; ``left``, how many rows it lacks, see
``Plot.left``; and ``notes``, sentences by the column that they are about, "" for any.
"""


class FrameColumn(NamedTuple):
    """What a column of a frame holds.

    Attributes:
        title: in words, for axes, hovers and tables.
        unit: as of ``core.units.amount``; "@NAME" where each block has it in its column of that name.
        told: whether hovers tell it; tables always do. The ends of an interval of the column NAME are called
            NAME_low and NAME_high.
    """

    title: str
    unit: str = ""
    told: bool = True


class Frame(NamedTuple):
    """A table in blocks; the run's or the group's name is its first column."""

    columns: Mapping[str, FrameColumn]
    blocks: Sequence[Block]


class Switch(NamedTuple):
    """Shows the blocks that have one of a column's values."""

    column: str
    label: str
    kind: Literal["radio", "select", "slider"] = "radio"


class Span(NamedTuple):
    """A stretch of a bar over time: the columns of its ends and of the time away at its end."""

    name: str
    start: str
    end: str
    away: str = ""


@dataclass(frozen=True)
class Plot:
    """A picture of a frame. Axes, hovers, the table, files and words for nothing follow from its columns.

    Attributes:
        id: its address in the page is #plot-ID.
        title, why: its heading, and what is seen, in a sentence.
        nothing: why nothing is drawn where the frame has no rows; a sentence.
        mark: "lines" (with bands), "points", "bars" (stacked, a row for each group), "heat" (columns x and y
            are lists, z is a matrix) or "gantt" (a row for each row of one block).
        x, y: columns; of several one is chosen. "points" without y have a row for each value of ``row``.
        z: of a map.
        runs: "all" for lines of all runs or of one, "one" for one at a time, "" where blocks are of groups.
        detail: a column that is empty in the lines of whole runs; of one run its other lines are drawn too.
        whole: the name of the line of a whole run beside these.
        series: a column that tells traces apart; "" for groups.
        log: axes that may be logarithmic; those in capitals are at first, and "auto" is x where runs end far
            apart.
        share: whether amounts may be shown as shares of their row's.
        looks: marks of some series, in Plotly's words.
        joined: places of groups that a line joins, by the columns of y and x; with names beside the points.
        spans: of "gantt".
        missing: why groups without rows are not drawn.
        left: what the rows are that blocks lack, and why, behind their number.
    """

    id: str
    title: str
    why: str
    nothing: str
    mark: Literal["lines", "points", "bars", "heat", "gantt"]
    frame: Frame
    x: Sequence[str]
    y: Sequence[str] = ()
    z: str = ""
    by: Sequence[Switch] = ()
    runs: Literal["", "all", "one"] = ""
    detail: str = ""
    whole: str = ""
    series: str = ""
    row: str = ""
    log: str = ""
    share: bool = False
    step: bool = False
    looks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    joined: Mapping[str, Sequence[int]] | None = None
    spans: Sequence[Span] = ()
    missing: str = ""
    left: str = ""


def shared(found: Iterable[tuple[int, Any]]) -> list[tuple[list[int], Any]]:
    """What runs have, equal things once: the places of those that share it, and it."""
    once: list[tuple[list[int], Any]] = []
    for run, one in found:
        same = next((runs for runs, other in once if other == one), None)
        if same is None:
            once.append(([run], one))
        else:
            same.append(run)
    return once


# The first three are of Okabe and Ito (https://jfly.uni-koeln.de/color/); others of theirs are too bright or
# too dark for a paper: each of these has a contrast of at least 3 to the page's light and dark one (WCAG 2.2,
# 1.4.11). The rest were searched for on a grid, so that the first two, three ... eight are far apart to all
# eyes (CIEDE2000): eight by 21 to most, by 9.6, 10.5 and 11.4 with prot-, deuter- and tritanopia.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#9977ff", "#776644", "#bb2277", "#cc0022", "#aa8899")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_BOTH = 24  # after so many, each colour has met half of the dashes


def styles(names: Sequence[str]) -> list[tuple[str, str]]:
    """The colour and the dash of each of these runs, whatever their order; the first of each by their names.

    Up to eight runs differ in their colour, up to six in their dash, up to 48 in one or the other.
    """
    found = [("", "")] * len(names)
    for rank, place in enumerate(sorted(range(len(names)), key=names.__getitem__)):
        found[place] = COLOURS[rank % len(COLOURS)], DASHES[(rank + rank // _BOTH) % len(DASHES)]
    return found
