"""What callbacks are told of a run's progress, and when."""

from functools import partial
from types import SimpleNamespace

import pytest

import edgefl
from edgefl.runs import so_far

approx = partial(pytest.approx, rel=0.05)

FEW = {
    "sweep": None,
    "task.clients": 6,
    "task.partition": "iid",
    "server": {"policy": {"name": "deadline", "quantile": 0.5}, "participants": 4, "rounds": 3},
    "evaluate.every": 2,
}


class _Told(edgefl.Callbacks):
    def __init__(self):
        self.calls, self.progress = [], []

    def told(self, so_far):
        self.calls.append(so_far.what)
        self.progress.append(so_far)

    def ended(self, end):
        self.calls.append(end.status)


def told(folder, engine="loop", **settings):
    seen = _Told()
    overrides = {**FEW, **settings}
    result = edgefl.run("quickstart", overrides=overrides, engine=engine, out=folder, callbacks=seen)
    return seen, *result.summary()


def _losses(figures):
    return {key: value for key, value in figures.items() if key.startswith("loss.")}


def test_progress_is_told_after_each_merge_and_evaluation_and_at_the_end(tmp_path):
    """Figures never fall, and the last have the keys and the values of the run's own; late jobs are waste."""
    seen, summary = told(tmp_path / "run")
    once = ["merged", "merged", "evaluated", "merged", "evaluated"]
    assert seen.calls == ["ready", *once, "over", "done"]
    assert [one.round for one in seen.progress] == [-1, 0, 1, 1, 2, 2, 2]
    assert [one.version for one in seen.progress] == [0, 1, 2, 2, 3, 3, 3]
    for key in ("virtual_s", "jobs", "down_bytes", "flops", "client_s", "joules", "wasted.bytes"):
        column = [one.figures[key] for one in seen.progress[1:]]
        assert column == sorted(column)
    last, own = seen.progress[-1].figures, summary.numbers
    assert last == pytest.approx({key: own[key] for key in last.keys() - _losses(last)} | _losses(last))
    assert last["wasted.bytes"] > 0
    # None before the first evaluation; then those of the run's tables, new where they were measured.
    result = edgefl.open(tmp_path / "run").runs[0]
    first = seen.progress[1]
    assert not [key for key in first.figures if key.startswith(("accuracy", "loss"))]
    assert first.new["training_loss"] == result.table("merges")[0]["loss"] is not None
    for one in seen.progress:
        assert ("accuracy.global.value" in one.new) == (one.what == "evaluated")
    rows = [row for row in result.table("evaluations") if row["round"] == 2]
    assert _losses(seen.progress[-1].figures) == {f"loss.{row['model']}": row["loss"] for row in rows}


def test_the_time_left_by_hand(tmp_path, monkeypatch):
    """Half a second a merge: the limit that is met first counts; nothing is left at the end."""
    now = iter(range(100))
    clock = SimpleNamespace(perf_counter=lambda: next(now) / 2)
    monkeypatch.setattr(so_far, "time", clock)
    seen, _ = told(tmp_path / "run", engine="null", server={"participants": 4, "rounds": 6})
    assert [one.left_s for one in seen.progress] == [None, None, *map(approx, (2.0, 1.5, 1.0, 0.5, 0.0)), 0.0]
    bytes_ = seen.progress[1].figures["bytes"]
    until = {"rounds": 100, "bytes": f"{int(4 * bytes_)} B"}
    seen, _ = told(tmp_path / "bytes", engine="null", server={"participants": 4, "until": until})
    assert seen.progress[2].left_s == approx(1.0)
