"""``benchmarks/page.py``: runs that are made up are runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from paged import paged

from edgefl.analysis.summary import summaries

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
page = pytest.importorskip("page", reason="playwright, which the extra test brings, is not installed")
PART = page.Part(settings=4, seeds=1, rounds=3, measured=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four runs of three rounds."""
    made = tmp_path_factory.mktemp("made")
    page.make(PART, made, 1.0)
    return made


def test_runs_that_are_made_up_are_runs(folder):
    """Done, of four policies, with jobs, energies and accuracies of both models; made once."""
    runs = summaries([folder])
    assert [run.status for run in runs] == ["done"] * 4
    assert len({run.name for run in runs}) == 4
    for run in runs:
        assert (run.rounds, set(run.accuracy)) == (3, {"global", "personal"})
        assert run.jobs > 0
        assert run.energy.joules > 0
        assert "class-accuracy" in run.measures
    plots = paged(folder).plots
    assert {len(one["accuracy"]) for one in plots["accuracy"]} == {3}
    assert {one["what"] for one in plots["parts"]} == {"class-accuracy, global, by class"}
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    page.make(PART, folder, 1.0)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
