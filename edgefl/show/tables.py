"""Tables for terminals of any width, and texts of cells that several tables share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.table import Table
from rich.text import Text

from edgefl.core.ledger import EnergyTotal
from edgefl.core.units import show_joules
from edgefl.show.texts import longest_line, longest_word, visible, wrapped

Cell = str | Text
Record = TypeVar("Record")

MISSING = "-"
UNKNOWN = "unknown"
NOT_REACHED = "not reached"
NO_MARGIN = "no margin"

# A text, a figure beside others, and a label wrap no narrower than this if there is another way.
_TEXT, _FIGURE, _LABEL = 16, 14, 24
_PADDING, _RULE = 2, 1


class Line:
    """A line of text; where it is too long, it goes on in the next, and no word is broken."""

    def __init__(self, text: str = "", style: str = "") -> None:
        self.text, self.style = visible(text), style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The lines at the console's width."""
        del console
        for line in wrapped(self.text, options.max_width):
            yield Text(line, style=self.style, no_wrap=True)


class Heading(Line):
    """A line of text, and a rule behind it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The line at the console's width."""
        del console
        rule = "─" * (options.max_width - cell_len(self.text) - 1)
        yield Text(f"{self.text} {rule}", no_wrap=True, overflow="ellipsis")


class Labelled:
    """Texts behind their labels; a long text goes on below itself."""

    def __init__(self, lines: Mapping[str, str]) -> None:
        self.lines = {visible(label): visible(text) for label, text in lines.items()}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The lines at the console's width."""
        del console
        indent = max(map(len, self.lines), default=0) + _PADDING
        for label, text in self.lines.items():
            for place, line in enumerate(wrapped(text, options.max_width - indent)):
                yield Text(f"{'' if place else label:<{indent}}{line}", no_wrap=True)


class Column(NamedTuple):
    """A table's column.

    Attributes:
        head: its heading.
        floor: what its texts wrap to before a column goes to another table; None if they do not.
        left: whether it is left-aligned.
        yields: whether it goes to a second table where the first is too narrow.
        names: whether it stands in every table, since it says what a row is; it is among the first columns.
    """

    head: str
    floor: int | None = None
    left: bool = False
    yields: bool = False
    names: bool = False


class Grid:
    """A table that fits any width, with no word broken and nothing left out.

    If the terminal is too narrow, headings and texts wrap first; then columns go to a second table, or to
    several, each with the names. If a table of these and one column is too wide, each row becomes a block of
    lines, one for each column.

    Attributes:
        drops: whether the last columns are left out where the terminal is too narrow for all, in place of
            further tables.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        rows: Iterable[Sequence[Cell]],
        *,
        title: str = "",
        pad_edge: bool,
        drops: bool = False,
    ) -> None:
        self.drops = drops
        self._columns = [column._replace(head=visible(column.head)) for column in columns]
        # As Text, since a user's names may look like markup.
        self._rows = [[_text(cell) for cell in row] for row in rows]
        self._title, self._pad_edge = title, pad_edge

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table at the console's width."""
        del console
        yield from _Laid(self, options).blocks()

    @property
    def parts(self) -> tuple[list[Column], list[list[Text]], str, bool]:
        """The columns, the rows, the title, and whether there is a space at the edges."""
        return self._columns, self._rows, self._title, self._pad_edge


class _Laid:
    """A table at a width."""

    def __init__(self, grid: Grid, options: ConsoleOptions) -> None:
        self._columns, self._rows, self._title, self._pad_edge = grid.parts
        # Without spaces at the edges, a table has two columns more.
        self._room = options.max_width + (0 if self._pad_edge else _PADDING)
        places = range(len(self._columns))
        self._names = [place for place in places if self._columns[place].names]
        self._drops = grid.drops
        self._natural = [max(map(longest_line, self._cells(place))) for place in places]
        self._least = [max(map(longest_word, self._cells(place))) for place in places]
        self._floor = [self._floor_of(place) for place in places]

    def _cells(self, place: int) -> Iterator[str]:
        yield self._columns[place].head
        yield from (row[place].plain for row in self._rows)

    def _floor_of(self, place: int) -> int:
        """A column's width before others go to another table: of whole cells, or of its texts wrapped."""
        head, *cells = self._cells(place)
        whole = max(map(longest_line, cells), default=0)
        floor = self._columns[place].floor
        return max(longest_word(head), whole if floor is None else max(self._least[place], min(whole, floor)))

    def blocks(self) -> Iterator[Table | Line]:
        """The title and the tables."""
        if self._title:
            yield Line(self._title, "italic")
        for number, places in enumerate(self._split()):
            if number:
                yield Line()
            widths = self._widths(places)
            if widths is None:
                yield from self._stacked(places)
            else:
                yield self._table(places, widths)

    def _split(self) -> list[list[int]]:
        """The columns of each table."""
        first = list(range(len(self._columns)))
        second: list[int] = []
        if self._drops:
            if not self._fits(first[: len(self._names) + 1]):
                return [first]
            while not self._fits(first):
                first.pop()
        if not self._fits(first):
            second = [place for place in first if self._columns[place].yields]
            first = [place for place in first if not self._columns[place].yields]
        first = first[len(self._names) :]
        return [*self._packed(first), *self._packed(second)] or [self._names]

    def _packed(self, places: list[int]) -> list[list[int]]:
        """Columns in tables of about the same number, each with the names."""
        tables: list[list[int]] = []
        for place in places:
            if not tables or not self._fits([*tables[-1], place]):
                tables.append(self._names.copy())
            tables[-1].append(place)
        size = -(-len(places) // max(len(tables), 1))
        even = [[*self._names, *places[start : start + size]] for start in range(0, len(places), size or 1)]
        return even if all(map(self._fits, even)) else tables

    def _fits(self, places: Sequence[int]) -> bool:
        return _whole([self._floor[place] for place in places]) <= self._room

    def _widths(self, places: Sequence[int]) -> list[int] | None:
        """Natural widths if they fit; else narrower ones, the first widened first; None if none fit."""
        for narrow in (self._natural, self._floor, self._least):
            widths = [narrow[place] for place in places]
            spare = self._room - _whole(widths)
            if spare >= 0:
                break
        else:
            return None
        named = len(self._names)
        for group in (range(named), range(named, len(places))):
            while spare and (wanting := [n for n in group if widths[n] < self._natural[places[n]]]):
                for number in wanting[:spare]:
                    widths[number] += 1
                spare -= min(spare, len(wanting))
        return [self._needed(place, width) for place, width in zip(places, widths, strict=True)]

    def _needed(self, place: int, width: int) -> int:
        """What of a width a column's texts use."""
        return max(longest_line("\n".join(wrapped(cell, width))) for cell in self._cells(place))

    def _table(self, places: Sequence[int], widths: Sequence[int]) -> Table:
        table = Table(show_edge=False, pad_edge=self._pad_edge, header_style="bold")
        heads = [
            wrapped(self._columns[place].head, width) for place, width in zip(places, widths, strict=True)
        ]
        lines = max(map(len, heads))
        for place, head, width in zip(places, heads, widths, strict=True):
            text = Text("\n".join([""] * (lines - len(head)) + head))
            justify: JustifyMethod = "left" if self._columns[place].left else "right"
            table.add_column(text, justify=justify, no_wrap=True, width=width)
        for row in self._rows:
            cells = [row[place] for place in places]
            texts = ("\n".join(wrapped(cell.plain, width)) for cell, width in zip(cells, widths, strict=True))
            table.add_row(*(Text(text, cell.style) for text, cell in zip(texts, cells, strict=True)))
        return table

    def _stacked(self, places: Sequence[int]) -> Iterator[Line]:
        """A block of lines for each row."""
        for row in self._rows:
            for place in places:
                head = self._columns[place].head.replace("\n", " ").strip()
                text = f"{head}: {row[place].plain}" if head else row[place].plain
                yield Line(f"  {text}") if place else Line(text, "bold")


def _text(cell: Cell) -> Text:
    return Text(visible(cell.plain), cell.style) if isinstance(cell, Text) else Text(visible(cell))


def _whole(widths: Sequence[int]) -> int:
    """The width of a table with these columns."""
    return sum(widths) + _PADDING * len(widths) + _RULE * (len(widths) - 1)


class Fitted(Grid):
    """Names and figures, one row each.

    Args:
        records: one for each row.
        columns: record -> cell, by the column's heading; the first column holds the names.
        left: headings of columns that are left-aligned.
        wraps: headings of columns whose text may wrap.
        yields: headings of columns that go to a second table, if one is too wide.
        names: how many columns say what a row is; they stand in every table.
    """

    def __init__(
        self,
        records: Iterable[Record],
        columns: Mapping[str, Callable[[Record], Cell]],
        *,
        left: Collection[str] = (),
        wraps: Collection[str] = (),
        yields: Collection[str] = (),
        names: int = 1,
    ) -> None:
        aligned = {next(iter(columns)), *left, *wraps}
        heads = [
            Column(
                head,
                _TEXT if head in wraps else None,
                left=head in aligned,
                yields=head in yields,
                names=place < names,
            )
            for place, head in enumerate(columns)
        ]
        rows = ([cell(record) for cell in columns.values()] for record in records)
        super().__init__(heads, rows, pad_edge=True)


def figures(
    heads: Sequence[str], rows: Iterable[Sequence[Cell]], left: int = 1, *, drops: bool = False
) -> Grid:
    """A table of ``left`` columns of labels, and columns of figures; ``drops`` as of ``Grid``."""
    labels = [Column(head, _LABEL, left=True, names=True) for head in heads[:left]]
    found = [*labels, *(Column(head, _FIGURE) for head in heads[left:])]
    return Grid(found, rows, pad_edge=False, drops=drops)


def named(title: str, rows: Iterable[Sequence[Cell]], heads: Sequence[str]) -> Grid:
    """A table of names and texts."""
    first, *others = heads
    columns = [Column(first, left=True, names=True), *(Column(head, _TEXT, left=True) for head in others)]
    return Grid(columns, rows, title=title, pad_edge=True)


def fits(suffices: bool | None, *, with_margin: bool | None = True) -> Cell:  # noqa: FBT001 - the value to show
    """Whether the memory suffices, with a margin and without, or that it is unknown."""
    if suffices is None:
        return UNKNOWN
    if suffices and not with_margin:
        return Text(NO_MARGIN, style="yellow")
    return "yes" if suffices else Text("no", style="red")


def joules(value: float | None) -> str:
    """An energy, or that it is unknown."""
    return UNKNOWN if value is None else show_joules(value)


def energy(total: EnergyTotal) -> str:
    """An energy with the number of clients that it covers, where that is not all."""
    known, clients = total.energy_known, total.energy_clients
    partial = total.joules is not None and known < clients
    return joules(total.joules) + (f" ({known} of {clients} clients)" if partial else "")
