"""Tables and lines of text, which each format shows in its own way, and words that several tables share."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from textwrap import fill, wrap
from typing import Any, NamedTuple, TypeAlias

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

# All but the newline; a lone surrogate is a byte of a file's name that is no UTF-8.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with a tab as a space and other control characters as escapes; newlines stay."""
    return _CONTROL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return " " if found[0] == "\t" else found[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def cut(texts: Sequence[str], most: int, more: str = "more") -> list[str]:
    """The first texts, and how many others there are."""
    left = len(texts) - most
    return [*texts[:most], *([f"and {left:,} {more}"] if left > 0 else [])]


def listed(texts: Sequence[str], most: int, apart: str = ", ") -> str:
    """The same in a line."""
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return apart.join(texts[:most]) + more


STANDS = {
    "running": "is still running",
    "killed": "was killed",
    "interrupted": "was interrupted",
    "failed": "failed",
}
"""What to say of a run that is not done, by its status."""


def unfinished(name: str, status: str, reason: str) -> str:
    """What became of a run that is not done."""
    if status == "failed":
        return f"{name} failed" + (f": {reason}" if reason else "")
    return f"{name} {STANDS[status]}: these are its figures so far"


Cell: TypeAlias = str | Text

MISSING = "-"
UNKNOWN = "unknown"
NOT_REACHED = "not reached"
NO_MARGIN = "no margin"

# Between a number and its unit.
_UNIT = re.compile(r"(?<=\d) (?=[^\W\d])(?!of |to |and )")
# Between two columns; and what names and figures of one kind, and other texts, wrap to before a table
# becomes two.
_BETWEEN, _NAME, _TEXT = len(" │ "), 28, 14


class Line:
    """A line of text, in Rich's words for its style; where it is too long, it goes on in the next."""

    def __init__(self, text: str = "", style: str = "") -> None:
        self.text, self.style = visible(text), style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console
        yield Text(_filled(self.text, options.max_width), self.style)


class Column(NamedTuple):
    """A table's column.

    Attributes:
        head: its heading; one may have several lines.
        of: what it shows of a record: an attribute's name, dotted within others, or a function; None where
            rows are cells.
        missing: what stands for None.
    """

    head: str
    of: str | Callable[[Any], Any] | None = None
    show: Callable[[Any], Cell] = str
    left: bool = False
    missing: str = MISSING

    def value(self, record: Any) -> Any:
        return attrgetter(self.of)(record) if isinstance(self.of, str) else self.of(record)  # type: ignore[misc]

    def cell(self, value: Any) -> Cell:
        text = self.missing if value is None else value if isinstance(value, Text) else self.show(value)
        return Text(visible(text.plain), text.style) if isinstance(text, Text) else visible(text)


class Table:
    """Columns, and a row for each record.

    On a terminal headings and texts wrap; where words would break, further columns stand in tables of their
    own below, each with the names. Without any heading, rows stand alone.

    Args:
        columns: each a heading, or what ``Column`` has, in its order.
        records: what the columns are of; where they are of nothing, each row's cells.
        names: how many columns say what a row is.
        drops: whether a terminal that is too narrow shows no more than the first columns.
    """

    def __init__(
        self,
        columns: Iterable[str | tuple[Any, ...]],
        records: Iterable[Any],
        title: str = "",
        *,
        names: int = 1,
        drops: bool = False,
    ) -> None:
        given = [Column(one) if isinstance(one, str) else Column(*one) for one in columns]
        self.columns = [
            one._replace(head=visible(one.head), left=one.left or place < names)
            for place, one in enumerate(given)
        ]
        self.rows = [self._cells(record) for record in records]
        self.title, self.names, self.drops = visible(title), names, drops

    def _cells(self, record: Any) -> list[Cell]:
        values = record if self.columns[0].of is None else [one.value(record) for one in self.columns]
        return [one.cell(value) for one, value in zip(self.columns, values, strict=True)]

    @property
    def heads(self) -> list[str]:
        return [one.head for one in self.columns]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console
        if self.title:
            yield Line(self.title, "italic")
        shown = any(self.heads)
        for number, widths in enumerate(_widths(self, options.max_width)):
            if number:
                yield Line()
            laid = RichTable(show_edge=False, pad_edge=False, show_header=shown, header_style="bold")
            for place, width in widths.items():
                justify: JustifyMethod = "left" if self.columns[place].left else "right"
                head = _filled(self.columns[place].head, width)
                laid.add_column(Text(head), justify=justify, overflow="fold", width=width)
            for row in self.rows:
                cells = ((row[place], width) for place, width in widths.items())
                laid.add_row(
                    *(Text(_filled(str(one), width), getattr(one, "style", "")) for one, width in cells)
                )
            yield laid


def _widths(table: Table, room: int) -> list[dict[int, int]]:
    """The tables that so many cells have room for: the widths of their columns, by place."""
    named, others = [*range(table.names)], [*range(table.names, len(table.columns))]
    # A word that is too long breaks, so that beside the names there is always room for one column.
    most = (room - _BETWEEN * table.names) // (table.names + 1)
    natural, least = [], []
    for place, column in enumerate(table.columns):
        texts = [str(row[place]) for row in table.rows]
        natural.append(_longest(_LINE, column.head, *texts))
        words = _longest(_WORD, column.head, *texts)
        figures = column.of is not None and not column.left
        whole = min(_longest(_LINE, *texts), _NAME if figures or place < table.names else _TEXT)
        least.append(min(most, max(words, whole)))

    def filled(places: Sequence[int], most: int) -> dict[int, int]:
        """The widest columns narrowed to a width, as far as they can be."""
        return {place: max(least[place], min(natural[place], most)) for place in places}

    def within(places: Sequence[int], most: int = 0) -> bool:
        return sum(filled(places, most).values()) + _BETWEEN * (len(places) - 1) <= room

    tables = [named.copy()]
    for place in others:
        if len(tables[-1]) > len(named) and not within([*tables[-1], place]):
            tables.append(named.copy())
        tables[-1].append(place)
    shown = tables[:1] if table.drops else tables
    return [filled(one, max(filter(partial(within, one), range(room)), default=0)) for one in shown]


# Parts of a text that stay whole: a word, that of a name behind its hyphens, a number and its unit.
_LINE, _WORD = partial(str.split, sep="\n"), partial(wrap, width=1, break_long_words=False)


def _longest(parted: Callable[[str], list[str]], *texts: str) -> int:
    """The cells of the longest part."""
    found = (part for text in texts for part in parted(_UNIT.sub("\xa0", text)))
    return max((cell_len(part.rstrip(" ")) for part in found), default=0)


def _filled(text: str, width: int) -> str:
    """A text in lines of a width."""
    return "\n".join(fill(line, width) for line in _UNIT.sub("\xa0", text).split("\n")).replace("\xa0", " ")


def parts(view: RenderableType) -> Iterator[Table | Line]:
    """What a view is made of, in order."""
    if isinstance(view, Table | Line):
        yield view
    elif isinstance(view, Text | str):
        yield Line(str(view), str(getattr(view, "style", "")))
    else:
        inner = view.renderables if isinstance(view, Group) else [view.__rich__()]  # type: ignore[union-attr]
        for one in inner:
            yield from parts(one)


def set_apart(parts: Iterable[RenderableType]) -> Sequence[RenderableType]:
    """Each with a blank line before it but the first."""
    return [block for part in parts for block in (Line(), part)][1:]


def fits(suffices: bool | None, *, with_margin: bool | None = True) -> Cell:  # noqa: FBT001 - the value to show
    """Whether the memory suffices, with a margin and without, or that it is unknown."""
    if suffices is None:
        return UNKNOWN
    if suffices and not with_margin:
        return Text(NO_MARGIN, style="yellow")
    return "yes" if suffices else Text("no", style="red")
