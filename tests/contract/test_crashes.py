"""A sample of the campaign in ``benchmarks/crashes.py``, and signals other than ``kill -9``."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from resumed import same_runs

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import crashes

# Two crashes of each; by day one alone, and one with workers.
CELLS = (
    ("sync", "fedavg", "loop"),
    ("sync", "fedclassavg", "vmapped"),
    ("deadline", "spherefed", "vmapped"),
    ("fedasync", "fedavg", "vmapped"),
    ("fedasync", "spherefed", "loop"),
    ("fedbuff", "fedclassavg", "processes"),
)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """Of short runs."""
    return crashes.Campaign(tmp_path_factory.mktemp("crashes"), 8)


def _sample():
    """Twelve of the campaign; those with workers, which take seconds to start, are killed once."""
    found = []
    for one, names in zip(crashes.crashes(60), CELLS * 2, strict=False):
        cell, all_processes = crashes.Cell(*names), len(found) < len(CELLS)
        moments = (crashes.Moment("merges", 0.5),) if cell.engine == "processes" else one.moments
        found.append(replace(one, cell=cell, moments=moments, all_processes=all_processes))
    return found


SAMPLE = _sample()
BY_DAY = (4, 12)


def test_the_sample_has_some_of_all():
    """Of policies, methods, engines and kinds of moments."""
    for place in range(3):
        assert {one.cell[place] for one in SAMPLE} == {cell[place] for cell in crashes.CELLS}
    assert len({moment.kind for one in SAMPLE for moment in one.moments}) > 3


@pytest.mark.parametrize(
    "crash",
    [
        pytest.param(
            one, id=f"{one.number} {one.cell}", marks=() if one.number in BY_DAY else pytest.mark.nightly
        )
        for one in SAMPLE
    ],
)
def test_a_run_that_was_killed_is_resumed_to_the_same(campaign, crash):
    """Bit for bit; nothing of the killed processes is left."""
    _, wrong = campaign.crashed(crash)
    assert wrong == ""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_was_told_to_end_is_resumed_to_the_same(campaign, number, status):
    """Ctrl-C and SIGTERM end it in order, with a hint how to go on."""
    cell = crashes.Cell("sync", "fedavg", "loop")
    reference, folder = campaign.reference(cell), campaign.folder / f"signal-{number}"
    process = crashes.Process(campaign.arguments(cell, folder), folder.with_suffix(".said"))
    while not process.over and crashes.count(folder, "merges") < 2:
        time.sleep(0.002)
    os.kill(process.session, number)
    assert process.wait() == status, process.text()
    assert "Traceback" not in process.text()
    campaign.to_end(folder)
    same_runs(reference.folder, folder)
