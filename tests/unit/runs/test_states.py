"""Client states in memory and in files; contract tests of resumed runs see that none is lost or mixed up."""

from pathlib import Path

import pytest
import torch

from edgefl.protocol import leaves
from edgefl.runs.states import States
from edgefl.store.checkpoints import state_file

SIZE = 40  # bytes of ``_tree``'s tensors
MAPS = Path("/proc/self/maps")


def _tree(value):
    weights = {"w": torch.full((4,), float(value)), "b": torch.zeros(2, 2)}
    half = torch.tensor([value, value], dtype=torch.float16)
    return {"head": {}, "count": torch.tensor(value, dtype=torch.int32), "body": weights, "a": half}


def _filled(folder, count, budget):
    states = States(folder, budget)
    for client in range(count):
        states.put(client, client + 10, _tree(client))
    return states


def test_nothing_is_written_within_the_budget(tmp_path):
    """Up to its last byte; the next state makes one file, that of the least recently used state, once."""
    states = _filled(tmp_path, 3, 3 * SIZE)
    assert list(tmp_path.iterdir()) == []
    states.get(0)
    states.put(3, 13, _tree(3))
    assert states.held_bytes == 3 * SIZE
    (file,) = tmp_path.iterdir()
    assert file == tmp_path / state_file(11)
    before = file.stat()
    with states.saving() as changed:
        assert {client: job for client, (job, _) in changed.items()} == {0: 10, 1: 11, 2: 12, 3: 13}
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    with states.saving() as changed:
        assert changed == {}
    assert [int(states.get(client)["count"]) for client in range(4)] == [0, 1, 2, 3]
    assert states.held_bytes <= 3 * SIZE
    assert (states.get(4), states.clients()) == (None, [0, 1, 2, 3])


@pytest.mark.skipif(not MAPS.exists(), reason="only Linux lists a process's mappings")
def test_a_state_that_was_read_keeps_no_mapping(tmp_path):
    """A process may have only so many, and a mapped tensor has an odd address."""
    states = _filled(tmp_path, 2, SIZE)
    tree = states.get(0)
    assert str(tmp_path) not in MAPS.read_text(encoding="utf-8")
    assert all(leaf.data_ptr() % 16 == 0 for leaf in leaves(tree))
