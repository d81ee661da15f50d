"""A sample of the campaign in ``benchmarks/robustness.py``: what may go wrong around a run, by seed."""

import random
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import robustness


@pytest.mark.parametrize("kind", ["not_executed", "damaged"])
def test_an_attempt_of_each_kind(kind):
    """Damage of every file of a run that ended is found; nothing that a run reads is executed."""
    attempt, _ = robustness.KINDS[kind]
    assert robustness.attempted(attempt, f"0 {kind} 0") == ""


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["all_killed", "killed_worker", "starved", "repeated"])
def test_an_attempt_that_takes_longer(kind):
    attempt, _ = robustness.KINDS[kind]
    assert robustness.attempted(attempt, f"0 {kind} 0") == ""


@pytest.mark.nightly
@pytest.mark.parametrize("way", robustness.WAYS)
def test_nothing_stays_behind_of_workers(tmp_path, way):
    """Of a driver that is killed, or of a group that is interrupted or terminated."""
    assert robustness.stopped(tmp_path, "processes", way, 1, 0.1) == ""


@pytest.mark.nightly
def test_memory_does_not_grow_with_rounds(tmp_path):
    seed = random.Random(1)  # noqa: S311 - nothing is secret
    assert robustness.flat_memory(seed, tmp_path, rounds=200) == ""
