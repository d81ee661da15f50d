"""The page of a run in progress, of one that was interrupted and of one that failed: its records so far."""

from __future__ import annotations

import json
import math
from contextlib import suppress

import pytest
from hooks import Hooks

import edgefl
from edgefl.analysis.summary import summaries
from edgefl.show.page.build import page
from edgefl.show.page.html import drawn

SMALL = ["sweep=null", "task.clients=4", "server={rounds: 5, participants: 2}", "evaluate.every=2"]


class _Watcher(Hooks):
    """Makes a page at each merge, and raises an error at one."""

    def __init__(self, error, at):
        self.error, self.at, self.pages = error, at, []

    def began(self, run):
        self.folder = run.folder

    def merged(self, so_far):
        self.pages.append((page([self.folder]), summaries([self.folder])[0]))
        if so_far.round == self.at:
            raise self.error


def equal(shown, run):
    """Checks that the records of a page with one run end in its summary."""
    json.dumps(drawn(shown), allow_nan=False)
    assert shown.runs[0].status == run.status
    assert {curve.model: curve.accuracy[-1] for curve in shown.curves} == {
        model: score.value for model, score in run.accuracy.items()
    }
    merged = run.spent["merged"].jobs
    assert sum(one.count for one in shown.durations if (one.device, one.what) == ("", "job")) == merged
    assert sum(len(one.client) for one in shown.rounds) == run.jobs
    for one in shown.participation:
        assert one.distinct[-1] == run.merged_clients
        assert one.fairness[-1] == run.fairness
    for one in shown.activity:
        assert one.interval_s * len(one.t_s) == pytest.approx(run.virtual_s)
        assert one.interval_s * math.fsum(one.active_mean) == pytest.approx(run.client_s)


@pytest.mark.parametrize(
    ("error", "status"), [(KeyboardInterrupt(), "interrupted"), (ValueError("a bug"), "failed")]
)
def test_the_records_are_those_so_far(tmp_path, error, status):
    """Of a run in progress at each of its merges, and of the run that it ends as, after round 3 of 5."""
    watcher = _Watcher(error, at=3)
    with suppress(KeyboardInterrupt):
        edgefl.run("quickstart", overrides=SMALL, callbacks=watcher, out=tmp_path / "run")
    assert [shown.runs[0].status for shown, _ in watcher.pages] == ["running"] * 4
    for shown, run in watcher.pages:
        equal(shown, run)
    first, last = watcher.pages[0][0], watcher.pages[-1][0]
    assert (len(first.curves), first.rounds[0].version) == (0, [1])
    assert [curve.round.tolist() for curve in last.curves] == [[1], [1]]
    equal(page([tmp_path / "run"]), summaries([tmp_path / "run"])[0])
    assert page([tmp_path / "run"]).runs[0].status == status


def test_a_run_that_ended_at_its_first_merge_has_one_round(tmp_path):
    """Without training; at the merge itself nothing was written yet."""
    watcher = _Watcher(KeyboardInterrupt(), at=0)
    with suppress(KeyboardInterrupt):
        edgefl.run("quickstart", overrides=SMALL, callbacks=watcher, engine="null", out=tmp_path / "run")
    ((before, _),) = watcher.pages
    assert before.durations == before.rounds == before.activity == before.participation == []
    after = page([tmp_path / "run"])
    equal(after, summaries([tmp_path / "run"])[0])
    assert (after.curves, after.rounds[0].version) == ([], [1])
