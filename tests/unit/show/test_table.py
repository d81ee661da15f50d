"""Laws of tables at any width: no figure is lost, and no line is longer than the terminal."""

import re

from commands import shown
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from edgefl.show.formats import notebook_html
from edgefl.show.table import Line, Table

# They look like markup, emoji and numbers.
NAMES = st.lists(st.text("ab[]:±", min_size=1, max_size=20), min_size=1, max_size=5).map("-".join)
TEXTS = st.lists(NAMES | st.sampled_from(["12.3 ms", "[/] [rev b]", ":warning:"]), max_size=4).map(" ".join)
WIDTHS = st.integers(60, 200)
NAME = "raspberry-pi-zero-2w"


@st.composite
def grids(draw):
    """The cells of a table, its headings first; each cell has a number of its own."""
    columns, rows = draw(st.integers(1, 12)), draw(st.integers(1, 2))
    cells = [[draw(TEXTS) for _ in range(columns)] for _ in range(rows + 1)]
    return [[f"{text} c{row}.{place}." for place, text in enumerate(line)] for row, line in enumerate(cells)]


def columns_of(text):
    """The tables' columns, from their heads to their ends, without white space; of each the lines joined."""
    found = []
    for table in text.split("\n\n"):
        lines = [re.split("[┃│]", line) for line in table.splitlines() if "━" not in line]
        found += ["".join(column) for column in zip(*lines, strict=True)]
    return [re.sub(r"\s", "", column) for column in found]


@given(grids(), WIDTHS, st.integers(1, 2))
def test_tables_hold_at_any_width(cells, width, names):
    heads, *rows = cells
    text = shown(Table(heads, rows, names=min(names, len(heads))), width)
    assert max(map(len, text.splitlines())) <= width
    wanted = [re.sub(r"\s", "", "".join(column)) for column in zip(*cells, strict=True)]
    assert [one for one in wanted if one not in columns_of(text)] == []


@given(TEXTS, WIDTHS)
def test_notes_hold_at_any_width(text, width):
    found = shown(Line(text), width)
    assert max(map(len, found.splitlines()), default=0) <= width
    assert re.sub(r"\s", "", found) == re.sub(r"\s", "", text)


def test_what_a_terminal_would_obey_is_shown_as_text():
    table = Table(("x\x07", "y"), [("a\x1b[31m\r", "b\udcff\tc"), (Text("[b]", "red"), "[/]")])
    for found in (shown(table, 80), notebook_html(table)):
        for text in ("a\\x1b[31m\\r", "b\\udcff c", "x\\x07", "[b]", "[/]"):
            assert text in found


def test_text_goes_on_below_itself_and_rows_without_headings_stand_alone():
    found = shown(Table(["name", "text"], [("raspberry-pi-zero-2w", "some words " * 10)]), 60)
    assert found.splitlines()[3].startswith(" " * 20)
    assert found.count("some words") > 1
    assert (
        shown(Table(["", ""], [("down", "1 MB"), ("up", "2 MB")], names=2), 80)
        == "down │ 1 MB\nup   │ 2 MB\n"
    )
