"""What callbacks are told of a run's progress, and when."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from unfinished import UNPOWERED, write

import edgefl
from edgefl.runs.so_far import TimeLeft

SCENARIO = {
    "name": "told",
    "task": {"dataset": "digits", "clients": 6, "partition": "iid"},
    "model": {"name": "mlp", "hidden": [8]},
    "method": "fedavg",
    "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.1}},
    "fleet": "home-lab",
    "server": {"policy": {"name": "deadline", "quantile": 0.5}, "participants": 4, "rounds": 3},
    "evaluate": {"every": 2},
}


class Told(edgefl.Callbacks):
    """Notes the calls, and what was told of progress."""

    def __init__(self):
        self.calls, self.progress = [], []
        for name in ("merged", "evaluated", "progressed", "ended"):
            setattr(self, name, lambda *given, name=name: self._called(name, given))

    def _called(self, name, given):
        self.calls.append(name)
        if name == "progressed":
            self.progress.append(*given)


def told(folder, **settings):
    """What is told of a run, and its summary."""
    seen = Told()
    result = edgefl.run({**SCENARIO, **settings}, out=folder, callbacks=seen)
    return seen, *result.summary()


def same(so_far, summary):
    """Whether progress has the figures that a run's summary has."""
    for name in ("name", "jobs", "down_bytes", "up_bytes", "flops"):
        assert getattr(so_far, name) == getattr(summary, name)
    assert so_far.t_s == summary.virtual_s
    assert so_far.client_s == pytest.approx(summary.client_s)
    assert so_far.wasted_bytes == summary.wasted.bytes
    assert so_far.wasted_share == summary.wasted.bytes / so_far.bytes
    assert so_far.joules == (None if summary.energy.joules is None else pytest.approx(summary.energy.joules))


def test_progress_is_told_after_each_merge_and_evaluation_and_at_the_end(tmp_path):
    """Figures never fall, and the last are the run's own; late jobs are waste."""
    seen, summary = told(tmp_path / "run")
    merge, evaluation = ["merged", "progressed"], ["evaluated", "progressed"]
    assert seen.calls == [*merge, *merge, *evaluation, *merge, *evaluation, "progressed", "ended"]
    assert [one.round for one in seen.progress] == [0, 1, 1, 2, 2, 2]
    assert [one.version for one in seen.progress] == [1, 2, 2, 3, 3, 3]
    for name in ("t_s", "jobs", "down_bytes", "flops", "client_s", "joules", "wasted_bytes"):
        column = [getattr(one, name) for one in seen.progress]
        assert column == sorted(column)
    same(seen.progress[-1], summary)
    assert seen.progress[-1].wasted_bytes > 0


def test_progress_has_the_last_scores_and_loss(tmp_path):
    """None before the first evaluation; then those of the run's tables."""
    seen, summary = told(tmp_path / "run")
    result = edgefl.open(tmp_path / "run").runs[0]
    assert seen.progress[0].accuracies == seen.progress[0].losses == {}
    assert seen.progress[-1].accuracies == {model: one.value for model, one in summary.accuracy.items()}
    rows = [row for row in result.table("evaluations") if row["round"] == 2]
    assert seen.progress[-1].losses == {row["model"]: row["loss"] for row in rows}
    assert seen.progress[0].loss == result.table("merges")[0]["loss"] is not None


def test_progress_without_training_and_without_energies(tmp_path, monkeypatch):
    """On the null engine jobs are charged late; an unknown energy is None, not 0."""
    monkeypatch.setenv("EDGEFL_PATH", str(write(tmp_path / "own")))
    fleet = {"members": [{"device": UNPOWERED, "link": "4g"}]}
    seen, summary = told(tmp_path / "run", engine="null", fleet=fleet)
    assert [one.jobs for one in seen.progress[:2]] == [4, 8]
    assert {one.joules for one in seen.progress} == {None}
    assert {one.loss for one in seen.progress} == {None}
    same(seen.progress[-1], summary)


def test_who_overrides_nothing_costs_nothing(tmp_path, monkeypatch):
    """Progress is not even put together for callbacks that do not ask for it."""
    monkeypatch.setattr("edgefl.runs.so_far.Progress", None)

    class Deaf(edgefl.Callbacks):
        pass

    (run,) = edgefl.run(SCENARIO, engine="null", out=tmp_path / "run", callbacks=Deaf()).runs
    assert run.status == "done"


def test_the_time_left_by_hand():
    """The pace is that of the latter half; the limit that is met first counts."""
    left = TimeLeft()
    # A first round of 10 s, then one a second, of 12.
    assert left.estimated(10, {"rounds": 1 / 12}) is None
    assert left.estimated(11, {"rounds": 2 / 12}) == pytest.approx(10)
    assert left.estimated(12, {"rounds": 3 / 12}) == pytest.approx(9)
    # From here on two seconds a round: the pace since 12.
    assert left.estimated(14, {"rounds": 4 / 12}) == pytest.approx(16)
    two = TimeLeft()
    assert two.estimated(0, {"rounds": 0.1, "bytes": 0.0}) is None
    assert two.estimated(1, {"rounds": 0.2, "bytes": 0.5}) == pytest.approx(1)
    assert two.estimated(2, {"rounds": 0.3, "bytes": 1.2}) == 0
    still = TimeLeft()
    assert still.estimated(0, {"bytes": 0.5}) is still.estimated(1, {"bytes": 0.5}) is None


def test_the_time_left_of_a_long_run():
    """Old marks are thinned out; the estimate stays right."""
    left = TimeLeft()
    found = [left.estimated(now, {"rounds": now / 10_000}) for now in range(5001)]
    assert found[-1] == pytest.approx(5000)
    assert sum(len(marks) for marks in vars(left).values()) <= 2 * 256


def test_an_estimate_comes_with_the_second_merge(tmp_path):
    """And nothing is left at the end."""
    seen, _ = told(tmp_path / "run", engine="null")
    assert [one.left_s is None for one in seen.progress] == [True, False, False, False]
    assert seen.progress[-1].left_s == 0
    assert asdict(seen.progress[-1])["rounds"] == 3
