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

WORKERS = crashes.Cell("fedbuff", "fedclassavg", "processes")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """Of short runs."""
    return crashes.Campaign(tmp_path_factory.mktemp("crashes"), 10)


def _sample():
    """Twelve of the campaign; two of one kind have workers, which take seconds to start."""
    all_ = crashes.crashes(60)
    alone = [one for one in all_ if one.cell.engine != "processes"][:10]
    late = crashes.Moment("merges", 0.5)
    pair = [replace(all_[0], number=number, cell=WORKERS, moments=(late,)) for number in (61, 62)]
    return [*alone, *(replace(one, all_processes=one.number == 61) for one in pair)]


SAMPLE = _sample()


def test_the_sample_has_some_of_all():
    """Of policies, methods, engines and kinds of moments."""
    assert len(SAMPLE) == 12
    for place in range(3):
        assert {one.cell[place] for one in SAMPLE} == {cell[place] for cell in crashes.CELLS}
    kinds = [moment.kind for one in SAMPLE for moment in one.moments]
    assert len(set(kinds)) > 4
    assert len(kinds) > 12


@pytest.mark.parametrize("crash", SAMPLE, ids=lambda one: f"{one.number} {one.cell}")
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
