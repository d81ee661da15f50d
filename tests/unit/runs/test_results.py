"""What ``edgefl.run`` and ``edgefl.open`` return: statuses, summaries, settings, frames."""

import sys

import pytest

import edgefl
from edgefl.runs.results import Result, RunResult

METHODS = [{"name": "flexchill", "temperature": temperature} for temperature in (0.5, 4)]
SWEEP = {"server": {"participants": 2, "rounds": 2}, "sweep": {"method": METHODS, "seed": [1, 2]}}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "swept"
    return edgefl.run("quickstart", overrides=SWEEP, engine="null", out=out)


def test_a_frame_has_the_settings_in_which_runs_differ(swept):
    jobs = swept.frame("jobs")
    assert list(jobs.columns[:4]) == ["run", "seed", "method.temperature", "job"]
    assert len(jobs) == 4 * 2 * 2
    counts = jobs.groupby(["method.temperature", "seed"]).size()
    assert counts.to_dict() == {(0.5, 1): 4, (0.5, 2): 4, (4, 1): 4, (4, 2): 4}
    one = swept.runs[3].frame("clients")
    assert list(one.columns[:3]) == ["run", "seed", "client"]
    assert set(one["seed"]) == {2}
    assert swept.runs[3].settings["method.temperature"] == 4
    with pytest.raises(edgefl.UserError, match="unknown table 'jbos'"):
        swept.frame("jbos")


def test_without_a_library_one_message_says_what_to_install(swept, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(edgefl.UserError, match="frames need pandas") as caught:
        swept.frame("jobs")
    assert caught.value.hint == "pip install 'edgefl-emulator[frames]'"


def test_where_no_run_can_be_read_that_is_said(tmp_path):
    run = RunResult("gone", tmp_path / "gone", "unreadable", "gone: run.sqlite cannot be read")
    for asked in (lambda one: one.summary(), lambda one: one.frame("jobs"), lambda one: one.plot()):
        with pytest.raises(edgefl.UserError, match="gone: run") as caught:
            asked(Result(tmp_path, (run,)))
        assert caught.value.where == str(tmp_path / "gone")
