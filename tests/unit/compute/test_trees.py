"""Trees that other processes read, and the folders that they lie in."""

from __future__ import annotations

import errno

import pytest
import torch

from edgefl.compute import trees
from edgefl.compute.trees import Files
from edgefl.core.errors import RunError
from edgefl.protocol import Batch

TREE = {"b": {"weight": torch.arange(6.0).reshape(2, 3)}, "a": [torch.ones(3), "text", None]}


@pytest.fixture
def both(tmp_path):
    """Two folders."""
    found = tuple(tmp_path / name for name in ("memory", "disk"))
    for one in found:
        one.mkdir()
    return found


@pytest.fixture
def full(monkeypatch):
    """How many of the next files have no room."""
    files, write = [0], trees.write

    def limited(tree, file):
        if files[0]:
            files[0] -= 1
            raise OSError(errno.ENOSPC, "No space left on device")
        write(tree, file)

    monkeypatch.setattr(trees, "write", limited)
    return files


def test_a_tree_comes_back(both):
    """With its keys in their order, in memory that torch's own is like, and that outlives the file."""
    stack, files = torch.arange(12.0).reshape(3, 4), Files(both)
    path = files.put(TREE)
    found = files.get(path)
    files.drop(path)
    assert (path.parent, list(both[0].iterdir()), list(found)) == (both[0], [], ["b", "a"])
    assert torch.equal(found["b"]["weight"], TREE["b"]["weight"])
    assert found["a"][1:] == ["text", None]
    assert [leaf.data_ptr() % 64 for leaf in (found["b"]["weight"], found["a"][0])] == [0, 0]
    found["a"][0].zero_()
    found = files.get(files.put([Batch(stack, number) for number in range(2)]))
    assert [pair.y for pair in found] == [0, 1]
    # Several clients' leaves are never the very same tensor, which would be taken for one that all share.
    assert found[0].x is not found[1].x
    many = [stack.T, stack.flip(0), stack.bfloat16(), stack > 1, torch.ones(2).expand(3, 2), torch.tensor(5)]
    many += [torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), torch.ones(2, requires_grad=True)]
    assert all(map(torch.equal, files.get(files.put(many)), many))
    assert files.put([torch.zeros(10**6)[:3]]).stat().st_size < 10**4


def test_if_one_folder_is_full_the_next_is_used(both, full):
    """Nothing stays in the full one, and readers need not know; if all are full, the error names them."""
    files, full[0] = Files(both), 1
    path = files.put(TREE)
    assert (path.parent, list(both[0].iterdir())) == (both[1], [])
    assert torch.equal(files.get(path)["a"][0], TREE["a"][0])
    files.drop(path)
    full[0] = 2
    with pytest.raises(RunError, match="No space left on device") as caught:
        files.put(TREE)
    assert str(both[0].parent) in caught.value.where
    assert "TMPDIR" in caught.value.hint
    assert [list(one.iterdir()) for one in both] == [[], []]
