"""Class counts in the store: what the split gave to whom, where it is known and not too much."""

from __future__ import annotations

import numpy as np
import pytest

import edgefl
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.runs import describing, drafts
from edgefl.store import read

SCENARIO = {
    "task": {"dataset": "digits", "clients": 8, "partition": {"name": "dirichlet", "alpha": 0.3}},
    "model": {"name": "mlp", "hidden": [8]},
    "method": "fedavg",
    "local": {"epochs": 1, "batch_size": 64},
    "fleet": "home-lab",
    "server": {"rounds": 1},
}


def _run(folder, **overrides):
    (run,) = edgefl.run(SCENARIO, overrides=overrides, engine="null", offline=True, out=folder).runs
    with read(run.folder) as reader:
        return run, reader.meta


def test_counts_are_the_federations(tmp_path):
    """Row by row those that planning split by, without zeros; they add up to each client's samples."""
    run, meta = _run(tmp_path / "run")
    (draft,) = drafts(SCENARIO)
    counts = plan(draft, DataAccess()).learning.federation.class_counts
    rows = run.table("class_counts")
    found = np.zeros_like(counts)
    for row in rows:
        found[row["client"], row["label"]] = row["samples"]
    assert np.array_equal(found, counts)
    assert len(rows) == np.count_nonzero(counts) < counts.size
    assert found.sum(axis=1).tolist() == [row["samples"] for row in run.table("clients")]
    assert (meta["class_counts"], meta["classes"]) == ("", [str(digit) for digit in range(10)])


@pytest.mark.parametrize(
    ("overrides", "why"),
    [
        pytest.param({"task.samples": 20, "task.partition": "iid"}, "no data", id="numbers of samples"),
        pytest.param({"task.dataset": "mnist"}, "assumed balanced", id="no files"),
    ],
)
def test_what_is_not_known_is_not_stored(tmp_path, monkeypatch, overrides, why):
    monkeypatch.setenv("HOME", str(tmp_path))
    run, meta = _run(tmp_path / "run", **overrides)
    assert run.table("class_counts") == []
    assert why in meta["class_counts"]


def test_a_large_fleet_stores_none(tmp_path, monkeypatch):
    monkeypatch.setattr(describing, "MOST_COUNTS", 80)
    run, meta = _run(tmp_path / "at")
    assert run.table("class_counts")
    monkeypatch.setattr(describing, "MOST_COUNTS", 79)
    run, meta = _run(tmp_path / "above")
    assert run.table("class_counts") == []
    assert meta["class_counts"] == "80 counts of clients and classes are more than the 79 that are kept"
