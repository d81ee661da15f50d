"""Trees that other processes read, and the folders that they lie in."""

import errno
import os

import pytest
import torch

from edgefl.compute import trees
from edgefl.compute.trees import Files
from edgefl.core.errors import RunError
from edgefl.protocol import Batch

TREE = {"b": {"weight": torch.arange(6.0).reshape(2, 3)}, "a": [torch.ones(3), "text", None]}


def test_a_tree_comes_back(tmp_path):
    """With its keys in their order, in memory that torch's own is like, and that outlives the file."""
    stack, files = torch.arange(12.0).reshape(3, 4), Files(tmp_path)
    path = files.put(TREE)
    found = files.get(path)
    files.drop(path)
    assert (path.parent, list(tmp_path.iterdir()), list(found)) == (tmp_path, [], ["b", "a"])
    assert torch.equal(found["b"]["weight"], TREE["b"]["weight"])
    assert found["a"][1:] == ["text", None]
    assert [leaf.data_ptr() % 64 for leaf in (found["b"]["weight"], found["a"][0])] == [0, 0]
    found["a"][0].zero_()
    found = files.get(files.put([Batch(stack, number) for number in range(2)]))
    assert [pair.y for pair in found] == [0, 1]
    # What clients share is stacked in another way, and so with other bits.
    assert found[0].x is found[1].x
    many = [stack.T, stack.flip(0), stack.bfloat16(), stack > 1, torch.ones(2).expand(3, 2), torch.tensor(5)]
    many += [torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), torch.ones(2, requires_grad=True)]
    assert all(map(torch.equal, files.get(files.put(many)), many))
    assert files.put([torch.zeros(10**6)[:3]]).stat().st_size < 10**4


def test_if_the_folder_is_full_nothing_stays(tmp_path, monkeypatch):
    """The error names its place and says what to do."""

    def limited(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(trees, "write", limited)
    with pytest.raises(RunError, match="No space left on device") as caught:
        Files(tmp_path).put(TREE)
    assert str(tmp_path.parent) in caught.value.where
    assert "fewer workers" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_folders_of_dead_processes_are_removed(tmp_path, monkeypatch):
    """In shared memory, by the next run; those of processes that live stay, and those of other hosts."""
    monkeypatch.setattr(trees, "_SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(trees, "_FREE_BYTES", 0)
    with monkeypatch.context() as patch:
        # No process's number is so high.
        patch.setattr(os, "getpid", lambda: 2**22 + 1)
        left = Files.fresh(0).folder
    (tmp_path / f"edgefl-elsewhere-{2**22 + 1}-x").mkdir()
    here = [tmp_path / f"edgefl-elsewhere-{2**22 + 1}-x", *(Files.fresh(0).folder for _ in range(2))]
    assert left not in here
    assert set(tmp_path.iterdir()) == set(here)
