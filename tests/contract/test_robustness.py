"""A sample of the campaign in ``benchmarks/robustness.py``: what may go wrong around a run, by seed."""

from __future__ import annotations

import importlib.util
import random
import signal
from pathlib import Path

import pytest

_FILE = Path(__file__).parents[2] / "benchmarks" / "robustness.py"
_SPEC = importlib.util.spec_from_file_location("robustness", _FILE)
assert _SPEC is not None
assert _SPEC.loader is not None
robustness = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(robustness)


@pytest.mark.parametrize(
    ("kind", "tries"),
    [
        ("same_events", 1),
        ("repeated", 1),
        pytest.param("killed_worker", 1, marks=pytest.mark.nightly),
        ("not_executed", 5),
    ],
)
def test_a_sample_of_the_campaign_holds(kind, tries):
    """Nothing is wrong after the first attempts of a seed."""
    attempt, _ = robustness.KINDS[kind]
    assert [robustness.attempted(attempt, f"1 {kind} {nth}") for nth in range(tries)] == [""] * tries


def test_memory_does_not_grow_with_rounds(tmp_path):
    """As in the campaign, with fewer rounds."""
    seed = random.Random(1)  # noqa: S311 - nothing is secret
    assert robustness.flat_memory(seed, tmp_path, rounds=200) == ""


@pytest.mark.nightly
def test_five_interrupts_in_a_row_end_a_run_once(tmp_path):
    """Status 130, no traceback, a readable run, no workers, nothing in shared memory."""
    assert robustness.stopped(tmp_path, "processes", (signal.SIGINT, 5, 130), 1, 0.0) == ""
