"""Tables for terminals of any width, plain tables, and texts of cells that several tables share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.table import Table
from rich.text import Text

from edgefl.core.ledger import EnergyTotal
from edgefl.core.units import show_joules

Cell = str | Text
Record = TypeVar("Record")

MISSING = "-"
UNKNOWN = "unknown"

# The narrowest column that a name folds into.
_LEAST = 8
# The narrowest column that text wraps in, unless it is shorter or has a longer word.
_TEXT = 16
_PADDING, _RULE = 2, 1


class Fitted:
    """Names and figures, one row each.

    If the terminal is too narrow, headings wrap first; then columns are left out, the least important first,
    and a line below lists them. Names fold only if that is not enough.

    Args:
        records: one for each row.
        columns: record -> cell, by the column's heading; the first column holds the names.
        left: headings of columns that are left-aligned.
        wraps: headings of columns whose text may wrap.
        yields: headings of columns that may be left out, the least important first.
    """

    def __init__(
        self,
        records: Sequence[Record],
        columns: Mapping[str, Callable[[Record], Cell]],
        *,
        left: Collection[str] = (),
        wraps: Collection[str] = (),
        yields: Sequence[str] = (),
    ) -> None:
        self._heads = list(columns)
        # As Text, since names may contain markup.
        self._rows = [[Text.assemble(cell(record)) for cell in columns.values()] for record in records]
        self._left, self._wraps, self._yields = {self._heads[0], *left, *wraps}, wraps, yields

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table at the console's width."""
        room = options.max_width
        omitted: list[str] = []
        columns = list(range(len(self._heads)))
        while _whole([self._least(column) for column in columns]) > room and len(omitted) < len(self._yields):
            omitted.append(self._yields[len(omitted)])
            columns = [column for column in columns if self._heads[column] not in omitted]
        yield self._table(columns, room)
        if omitted:
            names = ", ".join(head.replace("\n", " ").strip() for head in omitted)
            yield Text(f"columns left out: {names} (--json has all)", style="dim")

    def _table(self, columns: Sequence[int], room: int) -> Table:
        table = Table(show_edge=False, header_style="bold")
        widths = self._widths(columns, room)
        for column, width in zip(columns, widths, strict=True):
            head = self._heads[column]
            justify = "left" if head in self._left else "right"
            table.add_column(head, justify=justify, overflow="fold", width=width)  # type: ignore[arg-type]
        for row in self._rows:
            table.add_row(*(row[column] for column in columns))
        return table

    def _widths(self, columns: Sequence[int], room: int) -> list[int]:
        """Natural widths if they fit; else the narrowest, widened from left to right while there is room."""
        natural = [max(map(_longest, self._cells(column))) for column in columns]
        if _whole(natural) <= room:
            return natural
        widths = [self._least(column) for column in columns]
        spare = room - _whole(widths)
        if spare < 0:
            return [max(_LEAST, widths[0] + spare), *widths[1:]]
        for place, width in enumerate(natural):
            more = min(spare, width - widths[place])
            widths[place] += more
            spare -= more
        return widths

    def _least(self, column: int) -> int:
        """A column's narrowest width: whole cells, or words if they wrap, and whole words of its heading."""
        head, *cells = self._cells(column)
        least = max(map(cell_len, head.split()), default=1)
        if head not in self._wraps:
            return max([least, *map(_longest, cells)])
        words = [cell_len(word) for cell in cells for word in cell.split()]
        return max([least, *words, min(_TEXT, max(map(_longest, cells), default=0))])

    def _cells(self, column: int) -> list[str]:
        return [self._heads[column], *(str(row[column]) for row in self._rows)]


def _longest(text: str) -> int:
    return max(map(cell_len, text.splitlines()), default=0)


def _whole(widths: Sequence[int]) -> int:
    """The width of a table with these columns."""
    return sum(widths) + _PADDING * len(widths) + _RULE * (len(widths) - 1)


def fits(suffices: bool | None) -> Cell:  # noqa: FBT001 - the value to show
    """Whether the memory suffices, or that it is unknown."""
    return UNKNOWN if suffices is None else "yes" if suffices else Text("no", style="red")


def joules(value: float | None) -> str:
    """An energy, or that it is unknown."""
    return UNKNOWN if value is None else show_joules(value)


def energy(total: EnergyTotal) -> str:
    """An energy with the number of clients that it covers, where that is not all."""
    known, clients = total.energy_known, total.energy_clients
    partial = total.joules is not None and known < clients
    return joules(total.joules) + (f" ({known} of {clients} clients)" if partial else "")


def figures(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> Table:
    """A plain table: ``left`` columns of labels, the first of which never wraps, and columns of figures."""
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for place, head in enumerate(heads):
        justify: JustifyMethod = "left" if place < left else "right"
        table.add_column(head, justify=justify, no_wrap=not place, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def named(title: str, rows: Sequence[tuple[str, ...]], heads: Sequence[str]) -> Table:
    """A plain table of texts."""
    table = Table(title=title or None, title_justify="left", show_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
