"""A sample of the campaign in ``benchmarks/robustness.py``: what may go wrong around a run, by seed."""

import importlib.util
import random
from pathlib import Path

import pytest

_FILE = Path(__file__).parents[2] / "benchmarks" / "robustness.py"
_SPEC = importlib.util.spec_from_file_location("robustness", _FILE)
assert _SPEC is not None
assert _SPEC.loader is not None
robustness = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(robustness)


def test_nothing_that_a_run_reads_is_executed():
    attempt, _ = robustness.KINDS["not_executed"]
    assert [robustness.attempted(attempt, f"1 not_executed {nth}") for nth in range(5)] == [""] * 5


@pytest.mark.nightly
def test_memory_does_not_grow_with_rounds(tmp_path):
    seed = random.Random(1)  # noqa: S311 - nothing is secret
    assert robustness.flat_memory(seed, tmp_path, rounds=200) == ""
