"""A table of things that have names, for terminals of any width: no name is ever cut."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

Cell = str | Text

# What a name folds to where even the columns that stay leave no room for it.
_LEAST = 8
# What text wraps to, unless it is shorter or has a longer word.
_TEXT = 16
_PADDING, _RULE = 2, 1


class Fitted:
    """Names and figures, one thing a row.

    Where it is wider than the terminal, heads take several lines first; then columns give way, the least
    important one first, and a line below names them. A name folds only where that is not enough.

    Args:
        heads: of all columns; the first holds the names.
        rows: their cells.
        left: the columns of words, which stand to the left.
        wraps: the columns of text, which may take several lines.
        yields: the columns that may give way, the least important one first.
    """

    def __init__(
        self,
        heads: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        *,
        left: Collection[str] = (),
        wraps: Collection[str] = (),
        yields: Sequence[str] = (),
    ) -> None:
        self._heads, self._rows = heads, rows
        self._left, self._wraps, self._yields = {heads[0], *left, *wraps}, wraps, yields

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table at the width that there is."""
        room = options.max_width
        gone: list[str] = []
        places = list(range(len(self._heads)))
        while self._width(places) > room and len(gone) < len(self._yields):
            gone.append(self._yields[len(gone)])
            places = [place for place in places if self._heads[place] not in gone]
        yield self._table(places, room)
        if gone:
            names = ", ".join(head.replace("\n", " ").strip() for head in gone)
            yield Text(f"no room for: {names} (--json has everything)", style="dim")

    def _table(self, places: Sequence[int], room: int) -> Table:
        table = Table(show_edge=False, header_style="bold")
        widths = self._widths(places, room)
        for place, width in zip(places, widths, strict=True):
            head = self._heads[place]
            justify = "left" if head in self._left else "right"
            table.add_column(head, justify=justify, overflow="fold", width=width)  # type: ignore[arg-type]
        for row in self._rows:
            # Text, for a name may hold what would be markup.
            table.add_row(*(_text(row[place]) for place in places))
        return table

    def _widths(self, places: Sequence[int], room: int) -> list[int]:
        """The columns' widths: as they like where there is room, else as narrow as figures and words are."""
        wide = [max(map(_longest, self._column(place))) for place in places]
        if _whole(wide) <= room:
            return wide
        least = [self._least(place) for place in places]
        spare = room - _whole(least)
        if spare < 0:
            return [max(_LEAST, least[0] + spare), *least[1:]]
        for place, (one, most) in enumerate(zip(least, wide, strict=True)):
            more = min(spare, most - one)
            least[place] += more
            spare -= more
        return least

    def _width(self, places: Sequence[int]) -> int:
        return _whole([self._least(place) for place in places])

    def _least(self, place: int) -> int:
        """How narrow a column may be: whole cells, or whole words where they wrap, and its head's words."""
        head, *cells = self._column(place)
        least = max(map(cell_len, head.split()), default=1)
        if head not in self._wraps:
            return max([least, *map(_longest, cells)])
        words = [cell_len(word) for cell in cells for word in cell.split()]
        return max([least, *words, min(_TEXT, max(map(_longest, cells), default=0))])

    def _column(self, place: int) -> list[str]:
        return [self._heads[place], *(str(row[place]) for row in self._rows)]


def _text(cell: Cell) -> Text:
    return Text(cell) if isinstance(cell, str) else cell


def _longest(text: str) -> int:
    return max(map(cell_len, text.splitlines()), default=0)


def _whole(widths: Sequence[int]) -> int:
    """The width of a table with these columns."""
    return sum(widths) + _PADDING * len(widths) + _RULE * (len(widths) - 1)
