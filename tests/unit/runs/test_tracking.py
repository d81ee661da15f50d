"""Trackers beside runs: what they are told, and that nothing they do is noticed by a run."""

from __future__ import annotations

import sys

import pytest
import torch
from builders import learned
from commands import run_command
from hooks import Hooks
from tracked import JOURNAL, journal, own_tracker

import edgefl

SCENARIO = "quickstart"
SHORT = {"sweep": None, "server.rounds": 3, "method": "fedavg"}

# A tracker whose functions do what a test puts in their place.
BROKEN = '''
"""Broken: {title}."""

import edgefl


class Tracker(edgefl.Callbacks):
    def began(self, run):
        {began}

    def told(self, so_far):
        {told}

    def ended(self, end):
        {ended}


from edgefl.trackers import TrackerParams


class Params(TrackerParams):
    def build(self):
        {build}
        return Tracker()
'''


def broken(title="", build="pass", began="pass", told="pass", ended="pass") -> str:
    return BROKEN.format(title=title, build=build, began=began, told=told, ended=ended)


def run(out, *trackers, engine="null", **overrides):
    return edgefl.run(SCENARIO, overrides={**SHORT, **overrides}, engine=engine, out=out, track=trackers)


def test_what_is_unknown_is_left_out(tmp_path, monkeypatch, unfinished):  # noqa: ARG001
    folders = own_tracker(tmp_path / "more", monkeypatch, JOURNAL).parents[1], tmp_path / "unfinished"
    monkeypatch.setenv("EDGEFL_PATH", ":".join(map(str, folders)))
    file = tmp_path / "journal"
    fleet = {"members": [{"device": "unpowered-phone", "share": 1, "link": "ethernet"}]}
    run(tmp_path / "run", {"name": "mine", "file": str(file)}, fleet=fleet)
    figures = {key for call in journal(file) if call[0] == "told" for key in call[4]}
    costs = {"bytes", "down_bytes", "up_bytes", "flops", "client_s", "jobs"}
    assert figures == {"virtual_s", "wasted.bytes", *costs}
    assert "joules" not in journal(file)[-1][5]


def test_trackers_change_no_result(tmp_path, monkeypatch):
    """The same run_id, rows and models to the last bit, though one tracker works and two do not."""
    for name, code in {
        "mine": JOURNAL,
        "raises": broken(told="raise ValueError('no')"),
        "garbage": broken(
            began="run.settings['model.hidden'].clear(); run.tags.clear()", told="so_far.figures.clear()"
        ),
    }.items():
        own_tracker(tmp_path, monkeypatch, code, name)
    mine = {"name": "mine", "file": str(tmp_path / "journal")}
    (plain,) = run(tmp_path / "plain", engine="loop").runs
    (tracked,) = run(tmp_path / "tracked", mine, "garbage", "raises", engine="loop").runs
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
    assert calls[2][4]["training_loss"] > 0
    assert calls[-1][1] == "done"
    assert calls[-1][-1]["flops"] == plain.summary().flops


@pytest.mark.parametrize("hook", ["began", "told", "ended"])
def test_a_failure_is_said_once_with_its_line(hook, tmp_path, monkeypatch, caplog):
    """A note with what was raised, and where in the user's file; every run of the sweep is done."""
    file = own_tracker(tmp_path, monkeypatch, broken(hook, **{hook: "raise ValueError('no')"}))
    out = tmp_path / "runs"
    result = run(out, "mine", sweep={"seed": [1, 2]})
    assert [one.status for one in result.runs] == ["done", "done"]
    (note,) = [line for line in (record.getMessage() for record in caplog.records) if "tracker" in line]
    assert note.startswith(f"{result.runs[0].name}: the tracker mine failed and was turned off: ")
    assert f"trackers/mine.py failed in {hook}: ValueError: no ({file}:" in note


def test_trackers_are_told_of_an_interrupt(tmp_path, monkeypatch):
    class Stop(Hooks):
        def merged(self, so_far):
            if so_far.round == 1:
                raise KeyboardInterrupt

    own_tracker(tmp_path, monkeypatch, JOURNAL)
    file = tmp_path / "journal"
    track = [{"name": "mine", "file": str(file)}]
    with pytest.raises(KeyboardInterrupt):
        edgefl.run(
            SCENARIO, overrides=SHORT, engine="null", out=tmp_path / "run", callbacks=Stop(), track=track
        )
    assert [call[0] for call in journal(file)] == ["began", "told", "told", "ended"]
    assert journal(file)[-1][1:3] == ["interrupted", "KeyboardInterrupt"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("tensorbord", "unknown tracker 'tensorbord'"),
        ("{name: mine, fil: x}", "fil"),
        ("{name: mine}", "file"),
        ("3", "tracker should be a name"),
        ("{file: x}", "name"),
        ("{name: mine", "--track"),
    ],
)
def test_a_mistake_is_told_before_the_run(asked, message, tmp_path, monkeypatch, capsys):
    own_tracker(tmp_path, monkeypatch, JOURNAL)
    out = tmp_path / "run"
    status, _, err = run_command(capsys, "run", SCENARIO, "--track", asked, "--out", out)
    assert status == 2
    assert message in err
    assert "--track" in err
    assert not out.exists()


def test_a_file_that_cannot_be_loaded_is_bad_input(tmp_path, monkeypatch, capsys):
    base = "edgefl.trackers import TrackerParams"
    head = f"from {base}\nclass Params(TrackerParams):\n    def build(self):\n"
    for code, message in {
        "import nothing_such\n": "mine.py:1",
        '"""A tracker."""\n': "this tracker has no class Params derived from edgefl.trackers.TrackerParams",
        f"{head}        1 / 0\n": "mine.py:4",
        f"{head}        pass\n": "build in trackers/mine.py returned None instead of",
    }.items():
        own_tracker(tmp_path, monkeypatch, code)
        out = tmp_path / "run"
        status, _, err = run_command(capsys, "run", SCENARIO, "--track", "mine", "--out", out)
        assert status == 2
        assert message in err
        assert not out.exists()
        sys.modules.pop("edgefl_user.trackers.mine", None)


def test_the_command_tracks(tmp_path, monkeypatch, capsys):
    own_tracker(tmp_path, monkeypatch, JOURNAL)
    own_tracker(tmp_path, monkeypatch, broken(told="print('noise'); print(1 / 0)"), "bad")
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
