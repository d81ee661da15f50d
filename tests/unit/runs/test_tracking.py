"""Trackers beside runs: what they are given, and that nothing they do is noticed by a run."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
import torch
from builders import learned
from commands import run_command
from tracked import JOURNAL, journal, own_tracker

import edgefl
from edgefl.runs import tracking

SCENARIO = "quickstart"
SHORT = {"sweep": None, "server.rounds": 3, "method": "fedavg"}

# A tracker whose functions do what a test puts in their place.
BROKEN = '''
"""Broken: {title}."""

import sys


class Tracker:
    def log(self, points):
        {log}

    def finish(self, end):
        {finish}


def build(params, run):
    {build}
    return Tracker()
'''


def broken(title="", build="pass", log="pass", finish="pass") -> str:
    """Its code."""
    return BROKEN.format(title=title, build=build, log=log, finish=finish)


@pytest.fixture
def impatient(monkeypatch):
    """Trackers that hang are waited for only shortly; at the end of the test they go on."""
    monkeypatch.setattr(tracking, "PATIENCE_S", 0.4)
    monkeypatch.setattr(tracking, "_SILENT_S", 0.1)
    event = threading.Event()
    monkeypatch.setattr(threading, "end_of_the_test", event, raising=False)
    yield
    event.set()


HANGS = "import threading; threading.end_of_the_test.wait(60)"


def notes(caplog) -> list[str]:
    """What edgefl said."""
    return [record.getMessage() for record in caplog.records if record.name == "edgefl"]


def about(caplog, word: str) -> list[str]:
    """The notes with a word."""
    return [line for line in notes(caplog) if word in line]


def run(out, *trackers, engine="null", **overrides):
    """A short run."""
    return edgefl.run(SCENARIO, overrides={**SHORT, **overrides}, engine=engine, out=out, track=trackers)


def test_a_tracker_is_given_each_run_of_a_sweep(tmp_path, monkeypatch):
    """Built, logged to and finished in a thread of its own, run by run, under their group's name."""
    own_tracker(tmp_path, monkeypatch, JOURNAL)
    file = tmp_path / "journal"
    result = run(tmp_path / "runs", {"name": "mine", "file": str(file)}, sweep={"seed": [1, 2]})
    calls = journal(file)
    ends = [place for place, call in enumerate(calls) if call[0] == "finish"]
    assert len(ends) == len(result.runs) == 2
    for each, some in zip(result.runs, (calls[: ends[0] + 1], calls[ends[0] + 1 :]), strict=True):
        summary = each.summary()
        assert some[0] == ["build", each.name, SCENARIO, summary.run_id, summary.seed, "fedavg"]
        assert some[1] == ["thread", "tracker mine"]
        assert [call[0] for call in some[2:-1]] == ["log"] * len(some[2:-1])
        points = [point for call in some[2:-1] for point in call[1]]
        merges = each.table("merges")
        # The energies of the last jobs are known at the end alone.
        assert [point[:2] for point in points[:-1]] == [[row["round"], row["t_s"]] for row in merges]
        assert points[-1][2]["cost/jobs"] == summary.jobs
        assert some[-1][1:3] == ["done", ""]
        assert some[-1][5]["flops"] == summary.flops


def test_what_is_unknown_is_left_out(tmp_path, monkeypatch, unfinished):  # noqa: ARG001
    """Energies of a fleet without powers; no loss and no accuracy where nothing is trained."""
    folders = own_tracker(tmp_path / "more", monkeypatch, JOURNAL).parents[1], tmp_path / "unfinished"
    monkeypatch.setenv("EDGEFL_PATH", ":".join(map(str, folders)))
    file = tmp_path / "journal"
    fleet = {"members": [{"device": "unpowered-phone", "share": 1, "link": "ethernet"}]}
    run(tmp_path / "run", {"name": "mine", "file": str(file)}, fleet=fleet)
    points = [point for call in journal(file) if call[0] == "log" for point in call[1]]
    assert points
    assert {key for point in points for key in point[2]} == {
        f"cost/{name}"
        for name in (
            "bytes",
            "down_bytes",
            "up_bytes",
            "flops",
            "client_s",
            "jobs",
            "wasted_bytes",
            "wasted_share",
        )
    }
    assert "joules" not in journal(file)[-1][5]


@pytest.mark.usefixtures("impatient")
def test_trackers_change_no_result(tmp_path, monkeypatch):
    """The same run_id, rows and models to the last bit, though one tracker works and three fail."""
    for name, code in {
        "mine": JOURNAL,
        "raises": broken(log="raise ValueError('no')"),
        "hangs": broken(log=HANGS),
        "garbage": broken(
            build="run.settings['model.hidden'].clear(); run.tags.clear()",
            log="[point.figures.clear() for point in points]; points.clear()",
            finish="end.figures.clear(); object.__setattr__(end, 'status', 'lost')",
        ),
    }.items():
        own_tracker(tmp_path, monkeypatch, code, name)
    mine = {"name": "mine", "file": str(tmp_path / "journal")}
    (plain,) = run(tmp_path / "plain", engine="loop").runs
    (tracked,) = run(tmp_path / "tracked", "garbage", "raises", "hangs", mine, engine="loop").runs
    assert tracked.summary().run_id == plain.summary().run_id
    for table in ("jobs", "events", "evaluations", "client_evaluations"):
        rows = [
            [
                {key: value for key, value in row.items() if not key.startswith("host_")}
                for row in one.table(table)
            ]
            for one in (plain, tracked)
        ]
        assert rows[0] == rows[1]
    one, other = learned(plain), learned(tracked)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[key], other[key]) for key in one)
    calls = journal(tmp_path / "journal")
    assert calls[0][-1] == "fedavg"
    assert calls[2][1][0][2]["loss/train"] > 0
    assert calls[-1][1] == "done"
    assert calls[-1][-1]["flops"] == plain.summary().flops


@pytest.mark.parametrize(
    ("code", "what"),
    [
        (broken("b", log="raise ValueError('no')"), "trackers/mine.py failed in log: ValueError: no"),
        (broken("e", log="raise KeyboardInterrupt"), "KeyboardInterrupt"),
        (
            broken("h", build="return None"),
            "build in trackers/mine.py returned None instead of an object with",
        ),
        ('"""J."""\ndef build():\n    pass\n', "trackers/mine.py cannot be called as it is: TypeError"),
    ],
)
def test_a_failure_is_said_once_with_its_line(code, what, tmp_path, monkeypatch, caplog):
    """A note with what was raised, and where in the user's file; every run of the sweep is done."""
    file = own_tracker(tmp_path, monkeypatch, code)
    out = tmp_path / "runs"
    result = run(out, "mine", sweep={"seed": [1, 2]})
    assert [one.status for one in result.runs] == ["done", "done"]
    (note,) = about(caplog, "tracker")
    assert note.startswith(f"{out}: the tracker mine failed and was turned off: ")
    assert what in note
    assert f"({file}:" in note or "KeyboardInterrupt" in note


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("where", ["log"])
def test_a_tracker_that_hangs_is_given_up(where, tmp_path, monkeypatch, caplog):
    """It is waited for so long at the end, and no longer; that is said."""
    own_tracker(tmp_path, monkeypatch, broken(**{where: HANGS}))
    result = run(tmp_path / "run", "mine")
    assert [one.status for one in result.runs] == ["done"]
    waiting, gone = about(caplog, "tracker mine")
    assert "waiting for the tracker mine" in waiting
    assert "was not waited for any longer" in gone


class Releasing(edgefl.Callbacks):
    """Lets a tracker go on when the run has ended; it has no other way to."""

    def __init__(self, event: threading.Event) -> None:
        self.event = event

    def ended(self, name, status, reason):  # noqa: ARG002
        """See ``Callbacks.ended``."""
        self.event.set()


def test_no_run_waits_for_a_tracker(tmp_path, monkeypatch, caplog):
    """A run ends while its tracker is at its first point; what does not fit is dropped, counted and said."""
    file = tmp_path / "journal"
    own_tracker(tmp_path, monkeypatch, JOURNAL.replace("    def log(self, points):", WAITS))
    monkeypatch.setattr(tracking, "MOST_POINTS", 5)
    monkeypatch.setattr(tracking, "_PAUSE_S", 0.0)
    event = threading.Event()
    monkeypatch.setattr(threading, "release_the_tracker", event, raising=False)
    result = edgefl.run(
        SCENARIO,
        overrides={**SHORT, "server.rounds": 100},
        engine="null",
        out=tmp_path / "run",
        callbacks=Releasing(event),
        track=[{"name": "mine", "file": str(file)}],
    )
    assert event.is_set()
    calls = journal(file)
    logged = sum(len(call[1]) for call in calls if call[0] == "log")
    merges = len(result.runs[0].table("merges"))
    assert merges == 100
    assert 5 <= logged < 100
    assert calls[-1][:2] == ["finish", "done"]
    (note,) = about(caplog, "dropped")
    assert f"{merges - logged:,} points were dropped" in note


WAITS = """    def log(self, points):
        assert threading.release_the_tracker.wait(60)
"""


def test_trackers_are_told_of_an_interrupt(tmp_path, monkeypatch):
    """The run that was going on is finished as interrupted, with what it has; the interrupt goes on."""

    class Stop(edgefl.Callbacks):
        def merged(self, round_, t_s, loss):  # noqa: ARG002
            if round_ == 1:
                raise KeyboardInterrupt

    own_tracker(tmp_path, monkeypatch, JOURNAL)
    file = tmp_path / "journal"
    with pytest.raises(KeyboardInterrupt):
        edgefl.run(
            SCENARIO,
            overrides=SHORT,
            engine="null",
            out=tmp_path / "run",
            callbacks=Stop(),
            track=[{"name": "mine", "file": str(file)}],
        )
    assert [call[0] for call in journal(file)] == ["build", "thread", "log", "finish"]
    assert journal(file)[-1][1:3] == ["interrupted", "KeyboardInterrupt"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("tensorbord", "unknown tracker 'tensorbord'"),
        ("{name: mine, fil: x}", "fil"),
        ("{name: mine}", "file"),
        ("3", "tracker must be a name"),
        ("{file: x}", "name"),
        ("{name: mine", "--track"),
    ],
)
def test_a_mistake_is_told_before_the_run(asked, message, tmp_path, monkeypatch, capsys):
    """Exit status 2, one message, no directory."""
    own_tracker(tmp_path, monkeypatch, JOURNAL)
    out = tmp_path / "run"
    status, _, err = run_command(capsys, "run", SCENARIO, "--track", asked, "--out", out)
    assert status == 2
    assert message in err
    assert "--track" in err
    assert "Traceback" not in err
    assert not out.exists()


def test_a_file_that_cannot_be_loaded_is_bad_input(tmp_path, monkeypatch, capsys):
    """With its line; and so is one without build, and what its own check refuses."""
    for code, message in {
        "import nothing_such\n": "mine.py:1",
        '"""A tracker."""\n': "the tracker 'mine' has no function 'build'",
        "def build(params, run):\n    pass\n\n\ndef check(params):\n    1 / 0\n": "mine.py:6",
    }.items():
        own_tracker(tmp_path, monkeypatch, code)
        out = tmp_path / "run"
        status, _, err = run_command(capsys, "run", SCENARIO, "--track", "mine", "--out", out)
        assert status == 2
        assert message in err
        assert not out.exists()
        sys.modules.pop("edgefl_user.trackers.mine", None)


def test_the_command_tracks(tmp_path, monkeypatch, capsys):
    """``--track`` may be repeated, with a name or a mapping; notes go to standard error alone."""
    own_tracker(tmp_path, monkeypatch, JOURNAL)
    own_tracker(tmp_path, monkeypatch, broken(log="print('noise'); print(1 / 0)"), "bad")
    asked = [f"{{name: mine, file: {tmp_path / name}}}" for name in ("one", "two")]
    options = [option for each in (*asked, "bad") for option in ("--track", each)]
    settings = [option for key, value in SHORT.items() for option in ("--set", f"{key}={value or 'null'}")]
    out = tmp_path / "run"
    status, printed, err = run_command(
        capsys, "run", SCENARIO, *settings, "--engine", "null", "--out", out, *options, "--json"
    )
    assert status == 0
    assert printed.startswith("{")
    assert journal(tmp_path / "one") == journal(tmp_path / "two")
    assert err.count("note: ") == err.count("the tracker bad failed") + err.count("assumed")
    assert "ZeroDivisionError" in err


def test_nothing_of_trackers_is_imported_unasked(tmp_path):
    """A run loads neither the libraries nor the files of trackers."""
    code = f"""
import sys
import edgefl
edgefl.run({SCENARIO!r}, overrides={SHORT!r}, engine="null", out={str(tmp_path / "run")!r})
names = {{"tensorboard", "mlflow", "wandb", "torch.utils.tensorboard"}}
names |= {{f"edgefl.trackers.{{name}}" for name in names}}
print(*sorted(names & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_no_thread_is_left(tmp_path, monkeypatch):
    """A tracker's thread ends with the group."""
    before = set(threading.enumerate())
    own_tracker(tmp_path, monkeypatch, JOURNAL)
    run(tmp_path / "run", {"name": "mine", "file": str(tmp_path / "journal")})
    assert not [one.name for one in set(threading.enumerate()) - before if one.name.startswith("tracker ")]
