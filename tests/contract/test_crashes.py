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

# Two crashes of each, one of them by day.
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
BY_DAY = {1, 4, 6, 8, 9, 11}


def test_the_sample_has_some_of_all():
    """Of policies, methods, engines and kinds of moments."""
    by_day = [one for one in SAMPLE if one.number in BY_DAY]
    assert (len(SAMPLE), len({one.cell for one in by_day})) == (12, len(CELLS))
    for place in range(3):
        assert {one.cell[place] for one in by_day} == {cell[place] for cell in crashes.CELLS}
    kinds = [moment.kind for one in by_day for moment in one.moments]
    assert len(set(kinds)) > 3
    assert len(kinds) > len(CELLS)


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
