"""What the text of a page is made of; all of it is plain text, which the templates escape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Cell(NamedTuple):
    """A cell of a table.

    Attributes:
        text: what it shows.
        value: what it is sorted by; None for its text.
        mark: what is said below the text, such as that it is the best.
        kind: "best"; of a row's label "part", of the row before; or empty.
    """

    text: str
    value: float | None = None
    mark: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Table:
    """A table; the first cell of each row says what the row is.

    Attributes:
        caption: what it shows; unique in the page.
        head: the columns' headings.
        rows: the cells.
        sorts: whether its rows can be sorted; figures of several units cannot.
        folded: whether it is shown on demand alone.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    sorts: bool = True
    folded: bool = False


@dataclass(frozen=True)
class Section:
    """A section's text; its plots are drawn by the page's script.

    Attributes:
        id: its address in the page.
        title: its heading.
        nothing: why it has nothing to show; empty where it has something.
        facts: texts by label.
        warnings: what must not be overlooked.
        tables: its tables.
        notes: what the tables' signs mean.
        texts: long texts by title, folded.
    """

    id: str
    title: str
    nothing: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    texts: Mapping[str, str] = field(default_factory=dict)


# Groups that have a column each; more have a row each.
_ABREAST = 4


def across(
    caption: str, groups: Sequence[str], labels: Sequence[str], cells: Sequence[Sequence[Cell]]
) -> Table:
    """Figures of groups: a column for each group, or a row for each where there are many.

    Args:
        caption: the table's.
        groups: their names.
        labels: the figures' names; one that begins with spaces is a part of the last that does not.
        cells: for each figure, each group's.
    """
    if len(groups) <= _ABREAST:
        heads = [Cell(label.strip(), kind="part" if label.startswith(" ") else "") for label in labels]
        rows = [[head, *row] for head, row in zip(heads, cells, strict=True)]
        return Table(caption, ["figure", *groups], rows, sorts=False)
    rows = [[Cell(name), *(row[place] for row in cells)] for place, name in enumerate(groups)]
    return Table(caption, ["run", *_whole(labels)], rows)


def _whole(labels: Sequence[str]) -> Iterator[str]:
    """The labels, each part with what it is a part of."""
    whole = ""
    for label in labels:
        part = label.startswith(" ")
        whole = whole if part else label
        yield f"{whole}: {label.strip()}" if part else label
