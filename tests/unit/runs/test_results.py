"""What ``edgefl.run`` and ``edgefl.open`` return: statuses, summaries, settings, frames."""

import sys

import pytest

import edgefl
from edgefl.runs.results import Result, RunResult

SCENARIO = {
    "name": "swept",
    "task": {"dataset": "digits", "clients": 4, "partition": "iid"},
    "model": {"name": "mlp", "hidden": [8]},
    "method": {"name": "flexchill", "temperature": 1},
    "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.1}},
    "fleet": "home-lab",
    "server": {"participants": 2, "rounds": 2},
    "sweep": {"method.temperature": [0.5, 4], "seed": [1, 2]},
}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    return edgefl.run(SCENARIO, engine="null", out=tmp_path_factory.mktemp("runs") / "swept")


def test_what_was_run_can_be_opened(swept):
    assert edgefl.open(str(swept.folder)) == swept
    (only,) = edgefl.open(swept.runs[1].folder).runs
    assert only == swept.runs[1]
    assert only.summary() == swept.summary()[1]
    assert [one.name for one in swept.summary()] == [run.name for run in swept.runs]
    assert repr(swept) == f"Result({str(swept.folder)!r}, 4 runs: 4 done)"
    assert repr(only) == f"RunResult('temperature 0.5, seed 2', done, {str(only.folder)!r})"
    with pytest.raises(edgefl.UserError, match="neither a run nor a group"):
        edgefl.open(swept.folder / "nowhere")


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


@pytest.mark.parametrize(
    ("library", "kind", "message", "extra"),
    [
        ("pandas", "pandas", "frames need pandas", "frames"),
        ("pyarrow", "arrow", "Arrow tables need pyarrow", "parquet"),
    ],
)
def test_without_a_library_one_message_says_what_to_install(
    swept, monkeypatch, library, kind, message, extra
):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(edgefl.UserError, match=message) as caught:
        swept.frame("jobs", kind)
    assert caught.value.hint == f"pip install 'edgefl-emulator[{extra}]'"


def test_overrides_may_be_a_mapping(tmp_path):
    changes = {"server.rounds": 3, "sweep": None, "method": {"name": "fedavg"}, "local.batch_size": 16}
    (run,) = edgefl.run(SCENARIO, overrides=changes, engine="null", out=tmp_path / "1").runs
    assert (run.settings["server.until.rounds"], run.settings["local.batch_size"]) == (3, 16)
    assert run.settings["method.name"] == "fedavg"
    with pytest.raises(edgefl.UserError) as caught:
        edgefl.run(SCENARIO, overrides={"local.batch_size": "many"}, out=tmp_path / "2")
    assert "overrides['local.batch_size']" in caught.value.where
    with pytest.raises(edgefl.UserError, match="'seed' is not KEY=VALUE"):
        edgefl.run(SCENARIO, overrides="seed", out=tmp_path / "2")
    with pytest.raises(edgefl.UserError, match="cannot be a tuple"):
        edgefl.run(SCENARIO, overrides={"task": {("a", "b"): 1}}, out=tmp_path / "2")


def test_where_no_run_can_be_read_that_is_said(tmp_path):
    run = RunResult("gone", tmp_path / "gone", "unreadable", "gone: run.sqlite cannot be read")
    for asked in (lambda one: one.summary(), lambda one: one.frame("jobs"), lambda one: one.plot()):
        with pytest.raises(edgefl.UserError, match="gone: run") as caught:
            asked(Result(tmp_path, (run,)))
        assert caught.value.where == str(tmp_path / "gone")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda result: result.frame(None), "unknown table None"),
        (lambda result: result.plot(target="0.9"), "the target accuracy must be greater than 0 .*'0.9'"),
        (lambda result: result.summary(90), "the target accuracy must be greater than 0 and at most 1"),
        (lambda _: edgefl.run("quickstart", track=[3]), "tracker should be a name, .*; got 3"),
    ],
)
def test_values_of_another_type_are_refused_in_words(swept, ask, message):
    with pytest.raises(edgefl.UserError, match=message):
        ask(swept)
