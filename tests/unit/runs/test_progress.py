"""The display of running scenarios: where it is shown, and beside a user's own callbacks."""

import io
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from nightly import sampled
from rich.cells import cell_len
from rich.console import Console

import edgefl
from edgefl.runs import progress
from edgefl.runs.progress import Display
from edgefl.trackers import Began, Callbacks, End, Progress

# Brackets are no markup.
NAME = "[/] rev [b]"
FEW = {"name": NAME, "sweep": None, "server": {"participants": 2, "rounds": 2}}


class _Seen(Callbacks):
    def __init__(self):
        self.calls = []

    def began(self, run):
        self.calls.append(run.name)

    def told(self, so_far):
        self.calls.append(so_far.what)

    def ended(self, end):
        self.calls.append(end.status)


class _Terminal(io.StringIO):
    def isatty(self):
        return True


CALLS = [NAME, "ready", "merged", "merged", "over", "done"]


@sampled(
    2,
    ("terminal", "options", "shows"),
    [
        (True, {}, True),
        (False, {}, False),
        (False, {"progress": True}, True),
        (True, {"progress": False}, False),
        (True, {"callbacks": _Seen()}, False),
        (True, {"callbacks": _Seen(), "progress": True}, True),
    ],
)
def test_a_terminal_shows_progress_unless_asked_otherwise(tmp_path, monkeypatch, terminal, options, shows):
    """A user's callbacks take its place, or are called beside it; names are shown as they are."""
    file = _Terminal() if terminal else io.StringIO()
    kind = {"file": file, "force_terminal": terminal, "width": 100}
    monkeypatch.setattr(progress, "Console", lambda **given: Console(**{**given, **kind}))
    edgefl.run("quickstart", overrides=FEW, engine="null", out=tmp_path / "1", **options)
    assert ("[/] rev [b]: clock " in file.getvalue()) == shows
    assert bool(file.getvalue()) == shows
    if "callbacks" in options:
        assert options["callbacks"].calls == CALLS


FIGURES = {
    "virtual_s": 11_520.0,
    "bytes": 1_234_000_000,
    "wasted.bytes": 148_000_000,
    "accuracy.global.value": 0.812,
    "accuracy.personal.value": 0.754,
}
SO_FAR = Progress("study", "merged", "", 12, 11, 100, 11_520.0, 125.4, FIGURES, FIGURES)
BEGAN = Began("study", "group", 1, 1, 100, "0", 1, Path("runs/study"), Path("runs/study"), {}, {})
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def display_on(kind, name="study", so_far=SO_FAR, runs=1, file=None):
    file = file or (_Terminal() if kind.get("force_terminal") else io.StringIO())
    with Display(Console(file=file, highlight=False, markup=False, **kind)) as display:
        display.began(replace(BEGAN, name=name, runs=runs, rounds=so_far.rounds))
        display.told(so_far)
    return file.getvalue()


def lines_of(printed):
    """The lines that a terminal was given, without what moves the cursor and colours them."""
    return [line for line in re.split(r"[\r\n]+", CONTROLS.sub("", printed)) if line.strip()]


@pytest.mark.parametrize("width", [40, 60, 120])
@pytest.mark.parametrize("name", ["study", "\u540d" * 30, "a\x1b[2Jb\nc"])
@pytest.mark.parametrize("rounds", [100, None])
def test_no_line_is_wider_than_the_terminal(width, name, rounds):
    """Whatever a run is called; figures are left out, not broken off, and names cannot move the cursor."""
    so_far = replace(SO_FAR, rounds=rounds, round=11_999 if rounds is None else 11)
    lines = lines_of(display_on({"force_terminal": True, "width": width}, name, so_far, runs=12))
    assert max(map(cell_len, lines)) <= width
    first, second = lines[:2]
    assert ("12/100" if rounds else "12000") in first
    assert "81.2%" in second
    assert ("3 h 12 min" in second) == (width > 40)
    assert ("12% wasted" in second) == (width > 70)
    assert "[2J" not in "".join(lines).replace("\\x1b[2J", "")


def test_what_a_terminal_and_a_pipe_show_of_a_run_that_is_stopped(monkeypatch):
    """Its last figures stay; a run of a sweep has its number; NO_COLOR leaves what is redrawn."""
    figures = "study: global 81.2%, personal 75.4%, clock 3 h 12 min, 1.23 GB, 12% wasted"
    assert lines_of(display_on({"force_terminal": True, "width": 100}))[-1] == figures
    assert display_on({"force_terminal": False}) == f"{figures}\n"
    assert lines_of(display_on({"force_terminal": True, "width": 80}, runs=4))[0].startswith("1/4 study ")
    first = lines_of(display_on({"force_terminal": True, "width": 80}))[0]
    assert re.fullmatch("study  12/100  0 s  2 min 10 s left  ━━─{18}", first)
    monkeypatch.setenv("NO_COLOR", "1")
    printed = display_on({"force_terminal": True, "width": 80})
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", printed)
    assert "\x1b[?25l" in printed


def test_failures_and_interrupts_are_said():
    file = io.StringIO()
    failed = End("study", "failed", "it diverged", 1, 0.0, dict)

    def ending(error):
        file.truncate(file.seek(0))
        with suppress(KeyboardInterrupt, ValueError), Display(Console(file=file)) as display:
            display.began(replace(BEGAN, notes=["a note"]))
            display.ended(failed)
            raise error
        return file.getvalue()

    interrupted = "interrupted; to go on: edgefl run --resume runs/study\n"
    assert ending(KeyboardInterrupt()) == f"note: a note\n{interrupted}"
    assert ending(ValueError()) == "note: a note\n"
    file.truncate(file.seek(0))
    with Display(Console(file=file)) as display:
        display.ended(failed)
    assert file.getvalue() == "study failed: it diverged\n"
