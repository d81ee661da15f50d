"""Trackers beside runs: what they are told, and that nothing they do is noticed by a run."""

import sys

import pytest
import torch
from builders import learned
from commands import run_command
from nightly import sampled
from tracked import JOURNAL, journal, own_tracker

import edgefl

SCENARIO = "quickstart"
SHORT = {"sweep": None, "server.rounds": 3, "method": "fedavg"}

# A tracker whose functions do what a test puts in their place.
BROKEN = '''
"""Broken."""

import edgefl
from edgefl.trackers import TrackerParams


class Tracker(edgefl.Callbacks):
    def began(self, run):
        {began}

    def told(self, so_far):
        {told}

    def ended(self, end):
        {ended}


class Params(TrackerParams):
    def build(self):
        {build}
        return Tracker()
'''


def broken(**code) -> str:
    return BROKEN.format(**(dict.fromkeys(("build", "began", "told", "ended"), "pass") | code))


def run(out, *trackers, engine="null", **overrides):
    return edgefl.run(SCENARIO, overrides={**SHORT, **overrides}, engine=engine, out=out, track=trackers)


@pytest.mark.nightly
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
            [{key: value for key, value in row.items() if key[:5] != "host_"} for row in one.table(table)]
            for one in (plain, tracked)
        ]
        assert rows[0] == rows[1]
    one, other = learned(plain), learned(tracked)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[key], other[key]) for key in one)
    calls = journal(tmp_path / "journal")
    assert calls[0] == ["began", tracked.name, SCENARIO, tracked.summary().run_id, 7, "fedavg"]
    assert calls[2][4]["training_loss"] > 0
    assert (calls[-1][1], calls[-1][-1]["flops"]) == ("done", plain.summary().flops)


@sampled(1, "hook", ["began", "told", "ended"])
def test_a_failure_is_said_once_with_its_line(hook, tmp_path, monkeypatch, caplog):
    """A note with what was raised, and where in the user's file; every run of the sweep is done."""
    file = own_tracker(tmp_path, monkeypatch, broken(**{hook: "raise ValueError('no')"}))
    out = tmp_path / "runs"
    result = run(out, "mine", sweep={"seed": [1, 2]})
    assert [one.status for one in result.runs] == ["done", "done"]
    (note,) = [line for line in (record.getMessage() for record in caplog.records) if "tracker" in line]
    assert note.startswith(f"{result.runs[0].name}: the tracker mine failed and was turned off: ")
    assert f"trackers/mine.py failed in {hook}: ValueError: no ({file}:" in note


HEAD = "from edgefl.trackers import TrackerParams\nclass Params(TrackerParams):\n    def build(self):\n"
RETURNS = "build in trackers/mine.py returned None instead of"


@pytest.mark.parametrize(
    ("code", "asked", "message"),
    [
        (JOURNAL, "tensorbord", "unknown tracker 'tensorbord'"),
        (JOURNAL, "{name: mine, fil: x}", "fil"),
        (JOURNAL, "3", "tracker should be a name"),
        (JOURNAL, "{name: mine", "--track"),
        ("import nothing_such\n", "mine", "mine.py:1"),
        ('"""A tracker."""\n', "mine", "has no class Params derived from edgefl.trackers.TrackerParams"),
        (f"{HEAD}        1 / 0\n", "mine", "mine.py:4"),
        (f"{HEAD}        pass\n", "mine", RETURNS),
    ],
)
def test_a_mistake_is_told_before_the_run(code, asked, message, tmp_path, monkeypatch, capsys):
    own_tracker(tmp_path, monkeypatch, code)
    monkeypatch.delitem(sys.modules, "edgefl_user.trackers.mine", raising=False)
    status, _, err = run_command(capsys, "run", SCENARIO, "--track", asked, "--out", tmp_path / "run")
    assert (status, message in err, "--track" in err or code != JOURNAL) == (2, True, True)
    assert not (tmp_path / "run").exists()
