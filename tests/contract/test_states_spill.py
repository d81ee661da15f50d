"""Client states do not have to fit in memory."""

from __future__ import annotations

import pytest

import edgefl
from edgefl.protocol import flatten, read_tree
from edgefl.runs import states as states_module

CLIENTS = 500
BUDGET = 100_000  # bytes; one state of the model below has 5,640

SOURCE = """
'''Two grey images a client.'''
import numpy as np
from edgefl.data.spec import Arrays, Spec

SPEC = Spec(name="specks", shape=(1, 8, 8), classes=10, train_size=1000, test_size=100,
            class_names=tuple("0123456789"), mean=(0.5,), std=(0.25,))

def load(folder, *, download):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (1100, 1, 8, 8), dtype=np.uint8)
    labels = rng.integers(0, 10, 1100)
    return Arrays(images[:1000], labels[:1000], images[1000:], labels[1000:])
"""
SCENARIO = {
    "task": {"dataset": "specks", "clients": CLIENTS, "partition": "iid"},
    "model": {"name": "mlp", "hidden": [18]},
    "method": "local",
    "local": {"epochs": 1, "batch_size": 2, "optimizer": {"name": "sgd", "lr": 0.1}},
    "fleet": "home-lab",
    "server": {"rounds": 2},
    "evaluate": {"every": 2},
}


@pytest.fixture
def held(tmp_path, monkeypatch):
    """Puts the dataset on EDGEFL_PATH; the list of how much the states ever held."""
    folder = tmp_path / "own" / "datasets"
    folder.mkdir(parents=True)
    (folder / "specks.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path / "own"))
    found, put = [], states_module.States.put

    def watched(self, client, job, tree):
        put(self, client, job, tree)
        found.append(self.held_bytes)

    monkeypatch.setattr(states_module.States, "put", watched)
    return found


def test_500_stateful_clients_under_a_small_budget(tmp_path, held):
    """Two rounds of clients whose states together are 28 times the budget end as with all in memory."""
    found = []
    for memory in (f"{BUDGET} B", "1 GB"):
        engine = {"name": "vmapped", "state_memory": memory}
        (run,) = edgefl.run(SCENARIO, engine=engine, out=tmp_path / f"run-{len(found)}").runs
        assert run.status == "done"
        assert len(held) == 2 * CLIENTS
        assert (max(held) <= BUDGET) == (not found)
        held.clear()
        files = sorted((run.folder / "states").iterdir())
        assert len(files) == CLIENTS
        states = [
            {key: leaf.numpy().tobytes() for key, leaf in flatten(read_tree(path)).items()} for path in files
        ]
        found.append(([path.name for path in files], states, _accuracies(run)))
    assert found[0] == found[1]


def _accuracies(run):
    return [(row["client"], row["accuracy"]) for row in run.table("client_evaluations")]
