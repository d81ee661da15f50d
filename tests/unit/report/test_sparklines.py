"""Accuracy over time as a line of blocks: one time axis, one scale, words where there is no line."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from commands import run_command
from compared import RICH, rich
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from edgefl.report.comparison import comparison
from edgefl.report.history import History
from edgefl.report.sparklines import BLOCKS, NO_VALUE, Scale, sparkline
from edgefl.report.summary import Accuracy
from edgefl.runs.dry import dry_run

ASCII = dict(zip(BLOCKS + NO_VALUE, ",:;+*%#@.", strict=True))


@cache
def dry():
    """A dry run's summary."""
    return dry_run("quickstart", ["sweep=null", "server.rounds=2"])[0].summary


def scored(place, points, models=("global",), *, seed=None):
    """A run, its history: (seconds, accuracy) of each evaluation."""
    accuracy = {model: Accuracy(0.5, None, 3, None, None, None) for model in models}
    settings = {"seed": place if seed is None else seed, "method.name": "a" if seed is not None else place}
    run = replace(
        dry(),
        name=f"run {place}",
        run_dir=str(place),
        accuracy=accuracy,
        settings=settings,
        seed=settings["seed"],
        fleet_id="",
    )
    t_s, values = (
        np.array(column, dtype=float) for column in (zip(*points, strict=True) if points else ([], []))
    )
    count = np.arange(len(t_s))
    history = History(
        "global", count, count, t_s, count, t_s, count, count, t_s, tuple(count.tolist()), values, values
    )
    return run, {model: replace(history, model=model) for model in models} if points else {}


def table(*runs, width=100, encoding="utf-8"):
    """What a terminal shows of runs with histories."""
    histories = {run.run_dir: found for run, found in runs}
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding=encoding)
    console = Console(file=stream, width=width)
    console.print(comparison([run for run, _ in runs], history_of=lambda run: histories[run.run_dir]))
    stream.flush()
    return buffer.getvalue().decode(encoding)


def lines(text, model="global"):
    """The cells of the row of lines."""
    (row,) = [line for line in text.splitlines() if line.strip().startswith(f"over time, {model}")]
    return [cell.strip() for cell in re.split("[│|]", row)[1:]]


def test_all_runs_have_one_time_axis_and_one_scale():
    """A run that took half the time ends half-way; equal accuracies are equal blocks, whoever has them."""
    slow = scored(1, [(1, 0.0), (7, 0.5), (14, 1.0)])
    quick = scored(2, [(1, 0.0), (7, 1.0)])
    assert lines(table(slow, quick)) == ["▁▁▁▁▁▁▅▅▅▅▅▅▅█", "▁▁▁▁▁▁█·······"]
    assert "over time: ▁ 0.0% to █ 100.0%, from 0 to 14 s" in table(slow, quick)


def test_before_the_first_evaluation_is_nothing():
    """A line begins where a run was evaluated first, also of a run that was evaluated seldom."""
    assert lines(table(scored(1, [(7, 0.2), (14, 0.4)]))) == ["······▁▁▁▁▁▁▁█"]


def test_seeds_share_a_line_of_their_mean():
    """As their accuracy is the mean."""
    runs = [scored(0, [(7, 0.0), (14, 0.5)], seed=1), scored(1, [(7, 0.5), (14, 1.0)], seed=2)]
    text = table(*runs)
    assert lines(text) == ["······▁▁▁▁▁▁▁█"]
    assert "25.0% to █ 75.0%" in text


def test_without_a_line_there_are_words():
    """Of one evaluation, of none, and of accuracies that are no numbers."""
    drawn = scored(1, [(1, 0.5), (2, 0.6)])
    once, never, lost = scored(2, [(1, 0.5)]), scored(3, []), scored(4, [(1, np.nan), (2, np.nan)])
    assert lines(table(drawn, once, never, lost), "global")[1:] == ["one evaluation", "-", "-"]
    assert lines(table(once)) == ["one evaluation"]
    assert "from 0 to" not in table(once)
    assert lines(table(scored(5, [(1, 0.5), (2, 0.5)]))) == ["······▅▅▅▅▅▅▅▅"]
    assert "over time" not in table((replace(never[0], accuracy={}), {}))


def test_each_model_has_its_line():
    """Below its accuracy, on the same scale."""
    text = table(scored(1, [(1, 0.0), (2, 1.0)], ("global", "personal"))).splitlines()
    labels = [line.split("│")[0].strip() for line in text if "│" in line]
    assert labels[labels.index("accuracy, global") + 1] == "over time, global"
    assert labels[labels.index("accuracy, personal") + 1] == "over time, personal"


@pytest.mark.parametrize(
    ("width", "number", "encoding"), [(20, 1, "utf-8"), (60, 4, "ascii"), (80, 3, "utf-8"), (200, 6, "utf-8")]
)
def test_nothing_is_cut_at_any_width(width, number, encoding):
    """Each line is whole, on any terminal and in ASCII; no line of the table is too long."""
    whole = "▁▁▁▁▁▁▅▅▅▅▅▅▅█"
    if encoding == "ascii":
        whole = "".join(ASCII[block] for block in whole)
    text = table(
        *(scored(place, [(1, 0.0), (7, 0.5), (14, 1.0)]) for place in range(number)),
        width=width,
        encoding=encoding,
    )
    assert text.count(whole) == number
    assert max(map(len, text.splitlines())) <= width


POINTS = st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1)), min_size=1, max_size=40)


@given(POINTS, st.floats(0, 1e6))
def test_a_line_shows_the_last_accuracy_by_the_end_of_each_block(points, more_s):
    """Reckoned block by block; it is as wide as every other, and its highest block is the scale's end."""
    points = sorted(points, key=lambda point: point[0])
    t_s, accuracy = (np.array(column) for column in zip(*points, strict=True))
    until_s = t_s[-1] + more_s
    line = sparkline(t_s, accuracy, Scale(until_s, 0.0, 1.0))
    assert len(line) == 14
    ends = until_s * np.arange(1, 15) / 14
    ends[-1] = until_s
    for cell, end_s in enumerate(ends):
        known = [value for at_s, value in points if at_s <= end_s]
        over = cell and t_s[-1] <= ends[cell - 1]
        expected = NO_VALUE if over or not known else BLOCKS[min(int(known[-1] * 8), 7)]
        assert line[cell] == expected


def test_run_and_compare_draw_lines(tmp_path, capsys):
    """Of runs as they are stored; a dry run has none."""
    rich(tmp_path / "rich", evaluate={**RICH["evaluate"], "measures": []})
    _, out, _ = run_command(capsys, "compare", tmp_path / "rich")
    (cell,) = lines(out, "personal")
    assert set(cell) <= set(BLOCKS + NO_VALUE)
    assert len(cell) == 14
    short = ["run", "quickstart", "--set", "sweep=null", "--set", "server.rounds=2"]
    _, out, _ = run_command(capsys, *short, "--out", tmp_path / "run")
    assert "over time, global" in out
    _, out, _ = run_command(capsys, *short, "--engine", "null", "--out", tmp_path / "null")
    assert "over time" not in out
