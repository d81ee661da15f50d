"""Trees on their way to another process, and the folders that they lie in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from edgefl.compute import parcels
from edgefl.compute.folders import owned_folder
from edgefl.compute.parcels import Depot
from edgefl.core.errors import RunError

TREE = {"b": {"weight": torch.arange(6.0).reshape(2, 3)}, "a": [torch.ones(3), "text", None]}


@pytest.fixture
def full(monkeypatch):
    """Folders that have no room left."""
    found = set()

    def save(tensors, path):
        if path.parent in found:
            path.write_bytes(b"half")
            raise SafetensorError("I/O error: No space left on device (os error 28)")
        save_file(tensors, path)

    monkeypatch.setattr(parcels, "save_file", save)
    return found


def folders(tmp_path):
    """Two folders."""
    found = [tmp_path / name for name in ("memory", "disk")]
    for one in found:
        one.mkdir()
    return found


def test_where_one_folder_is_full_the_next_is_taken(tmp_path, full):
    """Nothing stays in the full one, and who reads needs not know."""
    memory, disk = folders(tmp_path)
    depot = Depot([memory, disk], "me")
    full.add(memory)
    parcel = depot.put(TREE)
    assert list(memory.iterdir()) == []
    assert parcel.path.parent == disk
    found = Depot([memory, disk], "other").get(parcel, last=True)
    assert list(found) == ["b", "a"]
    assert torch.equal(found["b"]["weight"], TREE["b"]["weight"])
    assert found["a"][1:] == ["text", None]
    assert list(disk.iterdir()) == []
    full.clear()
    assert depot.put(TREE).path.parent == memory


def test_where_all_are_full_the_run_fails(tmp_path, full):
    """It says where room is missing."""
    both = folders(tmp_path)
    full.update(both)
    with pytest.raises(RunError, match="No space left on device") as caught:
        Depot(both, "me").put(TREE)
    assert str(tmp_path) in caught.value.where
    assert "TMPDIR" in caught.value.hint
    assert [list(one.iterdir()) for one in both] == [[], []]


def test_what_a_killed_process_left_is_removed(tmp_path):
    """The next that makes a folder there removes it; folders of the living and of others stay."""
    program = "import os, sys; from pathlib import Path; from edgefl.compute.folders import owned_folder; "
    program += "print(owned_folder('x-', Path(sys.argv[1])), flush=True); os.kill(os.getpid(), 9)"
    ended = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=False
    )
    left = Path(ended.stdout.strip())
    assert list(tmp_path.iterdir()) == [left]
    (tmp_path / "x-other").mkdir()
    (left / "inside").mkdir()
    first = owned_folder("x-", tmp_path)
    second = owned_folder("x-", tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "x-other", first, second])
