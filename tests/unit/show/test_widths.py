"""Laws of tables at any width: no word is broken, no cell is lost, no line is longer than the terminal."""

from __future__ import annotations

import io
import re

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from edgefl.show.tables import Column, Fitted, Grid, Labelled, Line, figures, named
from edgefl.show.texts import longest_word, wrapped

# Parts of names that nothing may break; they look like markup, emoji and numbers.
PARTS = st.text("ab[]:±", min_size=1, max_size=20)
NAMES = st.lists(PARTS, min_size=1, max_size=5).map("-".join)
TEXTS = st.lists(NAMES | st.sampled_from(["12.3 ms", "[/] [rev b]", ":warning:"]), max_size=4).map(" ".join)
WIDTHS = st.integers(60, 200)
KINDS = {
    "fitted": lambda heads, rows: Fitted(
        rows,
        {head: lambda row, place=place: row[place] for place, head in enumerate(heads)},
        wraps=heads[1:2],
        yields=heads[2:3],
    ),
    "figures": figures,
    "named": lambda heads, rows: named("[/] title", rows, heads),
    "plain": lambda heads, rows: Grid(
        [Column(head, names=not n) for n, head in enumerate(heads)], rows, pad_edge=False
    ),
}


@st.composite
def tables(draw):
    """The cells of a table, its headings first; each cell has a number of its own."""
    columns, rows = draw(st.integers(1, 6)), draw(st.integers(1, 2))
    cells = [[draw(TEXTS) for _ in range(columns)] for _ in range(rows + 1)]
    return [[f"{text} c{row}.{place}." for place, text in enumerate(line)] for row, line in enumerate(cells)]


def printed(table, width):
    """What is printed, by a console that would read markup and emoji."""
    console = Console(file=io.StringIO(), width=width, markup=True, emoji=True)
    console.print(table)
    return console.file.getvalue()


def unbroken(text):
    """The parts of a text that stay whole."""
    words = text.replace("12.3 ms", "12.3_ms").split()
    return [part.replace("_", " ") for word in words for part in re.split(r"(?<=-)", word) if part]


@given(tables(), WIDTHS, st.sampled_from(sorted(KINDS)))
def test_tables_hold_at_any_width(cells, width, kind):
    """Every part of every heading and cell is whole, as often as it was given, or more often."""
    heads, *rows = cells
    found = printed(KINDS[kind](heads, rows), width)
    assert max(map(len, found.splitlines())) <= width
    missing = [part for line in cells for text in line for part in unbroken(text) if part not in found]
    assert missing == []


@given(TEXTS, WIDTHS)
def test_notes_hold_at_any_width(text, width):
    """Lines, and texts behind labels, keep every word and its order."""
    for note in (Line(text), Labelled({"label": text})):
        found = printed(note, width)
        assert max(map(len, found.splitlines()), default=0) <= width
        assert re.sub(r"\s", "", found.removeprefix("label")) == re.sub(r"\s", "", text)
        for part in unbroken(text):
            assert part in found


@given(st.text(max_size=80), st.integers(2, 30))
def test_no_character_is_lost(text, width):
    """Whatever the text, wrapping leaves out spaces alone."""
    lines = wrapped(text, width)
    assert re.sub(r"[ \n]", "", "".join(lines)) == re.sub(r"[ \n]", "", text)


def test_words_hold_together():
    """A number and its unit, a duration and an exponent are one word; a name ends behind its hyphens."""
    assert wrapped("time 4.99 MB / 12 kB", 9) == ["time", "4.99 MB /", "12 kB"]
    assert wrapped("after 3 min 12 s or so", 10) == ["after", "3 min 12 s", "or so"]
    assert wrapped("raspberry-pi-zero-2w", 13) == ["raspberry-pi-", "zero-2w"]
    assert wrapped("a wifi-pi4", 6) == ["a", "wifi-", "pi4"]
    assert wrapped("an error of 1.5e-05", 12) == ["an error of", "1.5e-05"]
    assert longest_word("57.6 GFLOP/s of raspberry-pi") == len("57.6 GFLOP/s")


def test_what_a_terminal_would_obey_is_shown_as_text():
    """Escapes, carriage returns and a file name's bytes that are no UTF-8."""
    found = printed(named("", [("a\x1b[31m\r", "b\udcff\tc")], ("x\x07", "y")), 80)
    assert "a\\x1b[31m\\r" in found
    assert "b\\udcff c" in found
    assert "x\\x07" in found
