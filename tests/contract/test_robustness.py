"""A sample of the campaign in ``benchmarks/robustness.py``: what may go wrong around a run, by seed."""

import importlib.util
import os
import random
import shutil
from pathlib import Path

import pytest

from edgefl.compute.trees import Files

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


@pytest.mark.skipif(not robustness.SHARED_MEMORY.is_dir(), reason="no shared memory that is a folder")
def test_a_folder_that_stays_in_shared_memory_is_found():
    before = set(robustness.SHARED_MEMORY.glob("edgefl-*"))
    folder = Files.fresh(0).folder
    try:
        assert str(folder) in robustness.left(before, os.getpid())
    finally:
        shutil.rmtree(folder)
