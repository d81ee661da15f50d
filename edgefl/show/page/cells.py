"""What the text of a page is made of; all of it is plain text, which the templates escape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from edgefl.analysis.summary import Summary
from edgefl.show.texts import listed
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
