"""A sample of the campaign in ``benchmarks/crashes.py``, and signals other than ``kill -9``."""

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

# Of the campaign; workers take seconds to start, and are killed once.
CELLS = (("fedasync", "fedavg", "vmapped"), ("fedbuff", "fedclassavg", "processes"))


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    return crashes.Campaign(tmp_path_factory.mktemp("crashes"), 8)


@pytest.mark.parametrize("cell", [CELLS[0], pytest.param(CELLS[1], marks=pytest.mark.nightly)])
def test_a_run_that_was_killed_is_resumed_to_the_same(campaign, cell):
    one = crashes.crashes(60)[4]
    moments = (crashes.Moment("merges", 0.5),) if "processes" in cell else one.moments
    crash = replace(one, cell=crashes.Cell(*cell), moments=moments, all_processes="processes" not in cell)
    _, wrong = campaign.crashed(crash)
    assert wrong == ""


@pytest.mark.nightly
def test_a_run_that_was_told_to_end_is_resumed_to_the_same(tmp_path):
    """SIGTERM ends it in order, with a hint how to go on; test_watching.py presses Ctrl-C."""
    # Long enough to be told before it is over.
    cell, campaign = crashes.Cell("sync", "fedavg", "loop"), crashes.Campaign(tmp_path, 16)
    reference, folder = campaign.reference(cell), campaign.folder / "signal"
    process = crashes.Process(campaign.arguments(cell, folder), folder.with_suffix(".said"))
    while not process.over and crashes.count(folder, "merges") < 2:
        time.sleep(0.002)
    os.kill(process.session, signal.SIGTERM)
    assert process.wait() == 143, process.text()
    assert "Traceback" not in process.text()
    campaign.to_end(folder)
    same_runs(reference.folder, folder)
