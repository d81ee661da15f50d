"""A comparison in Markdown, LaTeX and comma-separated values: whatever the names, the text is theirs."""

import csv
import io
import math
import re
from dataclasses import replace

import pytest
from compared import dry
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Group

from edgefl.show.formats import LATEX, csv_cell, latex, markdown, write_csv
from edgefl.show.frames import records
from edgefl.show.table import Line, Table

# Printable, with all that any of the formats gives a meaning to, and what looks like its escapes.
SPECIAL = "\\{}&%$#_~^<>|\"`'[]*-±\xd7·µ²°→≤≥\u2013…@!=+;,:() ab1é"
# What LaTeX would take for a command, or lacks.
MEANT = set("\\{}&%$#_~^<>|\"`'[]*±\xd7·µ²°→≤≥")
TEXTS = st.text(SPECIAL, max_size=12).map(str.strip)
CELLS = st.lists(st.lists(TEXTS, min_size=3, max_size=3), min_size=1, max_size=3)


def made(cells):
    return Table(cells[0], cells[1:])


def unescaped_latex(text):
    """What LaTeX shows of a cell; None if a character would mean something else."""
    by_code = sorted(((code, char) for char, code in LATEX.items()), key=lambda pair: -len(pair[0]))
    found = ""
    while text:
        if text.startswith("-{}-"):
            found, text = found + "-", text[3:]
            continue
        code, char = next(
            ((code, char) for code, char in by_code if text.startswith(code)), (text[0], text[0])
        )
        if code == char and char in MEANT:
            return None
        found, text = found + char, text[len(code) :]
    return found


def same(text):
    """With what LaTeX shows alike, and what stands for a missing figure, as one."""
    return text.replace("\u03bc", "µ").replace("\u2014", "---").replace("\u2013", "--")


@given(CELLS)
def test_latex_shows_every_text_as_it_is(cells):
    """Each row is one line with an end, with as many cells as there are columns, none of them broken."""
    found = latex(made(cells)).splitlines()
    begin, end = found.index(r"\begin{tabular}{lrr}"), found.index(r"\end{tabular}")
    lines = [line for line in found[begin:end] if line.endswith(r" \\")]
    assert len(lines) == len(cells)
    for line, texts in zip(lines, cells, strict=True):
        own = re.split(r"(?<!\\) & |(?<=\\\\) & ", " " + line.removesuffix(r" \\") + " ")
        shown = [unescaped_latex(cell.strip()) for cell in own]
        dashes = [
            "--" if place and text == "-" and line is not lines[0] else text
            for place, text in enumerate(texts)
        ]
        assert [same(text) for text in shown] == [same(text) for text in dashes]
        # After the end of the row before, this would be its argument.
        assert line[0] not in "[*"


@given(CELLS)
def test_markdown_shows_every_text_as_it_is(cells):
    head, rule, *rows = markdown(made(cells)).rstrip("\n").split("\n")
    assert rule == "| :-- | --: | --: |"
    for line, texts in zip([head, *rows], cells, strict=True):
        own = re.split(r"(?<!\\)\|", line.replace(r"\\", "\0"))[1:-1]
        assert not any(re.search(r"(?<!\\)[`*_{}\[\]<>|~&$#@]", cell) for cell in own)
        assert [re.sub(r"\\(.)", r"\1", cell).replace("\0", "\\").strip() for cell in own] == texts


def test_a_heading_of_two_lines_and_an_indented_label():
    rows = [["  body", "-"], ["a", "1.5 s *"], ["b", "2.5 s  "]]
    found = Group(Table(["", "fedavg\n3 seeds"], rows), Line(), Line("± so_so"))
    assert markdown(found).splitlines() == [
        "|  | fedavg<br>3 seeds |",
        "| :-- | --: |",
        "| &ensp;&ensp;body | - |",
        "| a | 1.5 s \\* |",
        "| b | 2.5 s |",
        "",
        "± so\\_so",
    ]
    assert latex(found).splitlines() == [
        r"% \usepackage{booktabs}",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r" & \shortstack[r]{fedavg \\ 3 seeds} \\",
        r"\midrule",
        r"\quad body & -- \\",
        r"a & 1.5 s {*} \\",
        # The room of a mark that others of its column have stays empty.
        r"b & 2.5 s\phantom{ *} \\",
        r"\bottomrule",
        r"\end{tabular}",
        "% ± so_so",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1. run", "1\\. run"),
        ("- run", "\\- run"),
        ("==", "\\=="),
        ("     run", "run"),
        ("12 runs", "12 runs"),
    ],
)
def test_a_note_is_a_paragraph(text, shown):
    """Whatever a run's name, with which it may begin; neither a list, nor a heading, nor code."""
    assert markdown(Line(text)).strip() == shown


def test_csv_quotes_what_it_must_and_starts_no_formula():
    """Lines end in CR LF; a name that a spreadsheet would reckon gets an apostrophe, a number none."""
    found = replace(
        dry("server.rounds=1"), name='=HYPERLINK("http://x"), "a"\nb', method="@sum", joules_between=None
    )
    stream = io.StringIO()
    write_csv(stream, *records([found]))
    lines = stream.getvalue().split("\r\n")
    assert lines[1].startswith('"\'=HYPERLINK(""http://x""), ""a"", b",1,')
    assert lines[-1] == ""
    (row,) = csv.DictReader(io.StringIO(stream.getvalue(), newline=""))
    assert row["method"] == "'@sum"
    cells = {-1: -1, -0.5: -0.5, None: "", math.nan: "", True: "true", (2, "a"): '[2, "a"]', "-x": "'-x"}
    assert list(map(csv_cell, cells)) == list(cells.values())
