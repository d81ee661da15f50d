"""Tables of texts and the lines below them, which each format prints in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Note(NamedTuple):
    """A line below tables.

    Attributes:
        text: what it says.
        style: how a terminal shows it, in Rich's words.
    """

    text: str
    style: str = ""


class TextTable(NamedTuple):
    """A table whose first column says what a row is.

    Attributes:
        heads: of its columns; one may have several lines.
        rows: their cells. Of a first cell, leading spaces indent what belongs to the row above.
        drops: whether a terminal that is too narrow shows no more than the first columns.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    drops: bool = False


class TextTables(NamedTuple):
    """Tables that belong together.

    Attributes:
        tables: one or more.
        notes: what stands below them.
    """

    tables: Sequence[TextTable]
    notes: Sequence[Note]
