"""The page of a run in progress, of one that was interrupted and of one that failed: its records so far."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hooks import Hooks
from paged import paged

import edgefl
from edgefl.analysis.summary import summaries

SMALL = ["sweep=null", "task.clients=4", "server={rounds: 5, participants: 2}", "evaluate.every=2"]


class _Watcher(Hooks):
    """Makes a page at each merge, and raises an error at one."""

    def __init__(self, error, at):
        self.error, self.at, self.pages = error, at, []

    def began(self, run):
        self.folder = run.folder

    def merged(self, so_far):
        self.pages.append((paged(self.folder), summaries([self.folder])[0]))
        if so_far.round == self.at:
            raise self.error


def equal(shown, run):
    """Checks that what a page with one run draws ends in its summary."""
    assert shown.told.runs[0].summary.status == run.status
    assert {one["model"]: one["accuracy"][-1] for one in shown.plots["accuracy"]} == {
        model: score.value for model, score in run.accuracy.items()
    }
    whole = [one for one in shown.plots["durations"] if (one["device"], one["of"]) == ("", "jobs")]
    assert sum(one["count"] for one in whole) == run.spent["merged"].jobs
    assert sum(len(one["client"]) for one in shown.plots["round"]) == run.jobs
    for one in shown.plots["participation"]:
        assert one["distinct"][-1] == run.merged_clients
        assert one["fairness"][-1] == run.fairness
    for one in shown.plots["active"]:
        if one["of"] == "mean over a four-hundredth":
            assert one["t_s"][-1] == pytest.approx(run.virtual_s)
            assert math.fsum(one["clients"][:-1]) * run.virtual_s / 400 == pytest.approx(run.client_s)


@pytest.mark.parametrize(
    ("error", "status"), [(KeyboardInterrupt(), "interrupted"), (ValueError("a bug"), "failed")]
)
def test_the_records_are_those_so_far(tmp_path, error, status):
    """Of a run in progress at each of its merges, and of the run that it ends as, after round 3 of 5."""
    watcher = _Watcher(error, at=3)
    with suppress(KeyboardInterrupt):
        edgefl.run("quickstart", overrides=SMALL, callbacks=watcher, out=tmp_path / "run")
    assert [shown.told.runs[0].summary.status for shown, _ in watcher.pages] == ["running"] * 4
    for shown, run in watcher.pages:
        equal(shown, run)
    first, last = watcher.pages[0][0], watcher.pages[-1][0]
    assert (first.plots["accuracy"], [one["version"] for one in first.plots["round"]]) == ([], [1])
    assert [one["round"] for one in last.plots["accuracy"]] == [[1], [1]]
    equal(paged(tmp_path / "run"), summaries([tmp_path / "run"])[0])
    assert paged(tmp_path / "run").told.runs[0].summary.status == status
