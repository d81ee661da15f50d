"""Trees that other processes read, and the folders that they lie in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from edgefl.compute import tensor_store
from edgefl.compute.folders import owned_folder
from edgefl.compute.tensor_store import TensorStore
from edgefl.core.errors import RunError


class Pair(NamedTuple):
    """A named tuple within a tree."""

    number: int
    tree: Any


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

    monkeypatch.setattr(tensor_store, "save_file", save)
    return found


def folders(tmp_path):
    """Two folders."""
    found = [tmp_path / name for name in ("memory", "disk")]
    for one in found:
        one.mkdir()
    return found


def test_if_one_folder_is_full_the_next_is_used(tmp_path, full):
    """Nothing stays in the full one, and readers need not know."""
    memory, disk = folders(tmp_path)
    store = TensorStore([memory, disk], "me")
    full.add(memory)
    file = store.put(TREE)
    assert list(memory.iterdir()) == []
    assert file.path.parent == disk
    found = TensorStore([memory, disk], "other").get(file, last=True)
    assert list(found) == ["b", "a"]
    assert torch.equal(found["b"]["weight"], TREE["b"]["weight"])
    assert found["a"][1:] == ["text", None]
    assert list(disk.iterdir()) == []
    full.clear()
    assert store.put(TREE).path.parent == memory


def test_rows_of_a_stack_are_one_tensor(tmp_path):
    """A group's uploads are written as one tensor per leaf; a single row of a stack is written alone."""
    stack = torch.arange(12.0).reshape(3, 4)
    sent = [
        {"w": row, "shared": shared} for row, shared in zip(stack, torch.ones(2).expand(3, 2), strict=True)
    ]
    store = TensorStore([tmp_path], "me")
    file = store.put([Pair(number, tree) for number, tree in enumerate(sent)])
    assert len(load_file(file.path)) == 2
    found = store.get(file)
    assert [pair.number for pair in found] == [0, 1, 2]
    assert all(
        torch.equal(pair.tree[key], tree[key]) for pair, tree in zip(found, sent, strict=True) for key in tree
    )
    # Several clients' leaves are never the very same tensor, which would be taken for one that all share.
    assert found[0].tree["shared"] is not found[1].tree["shared"]
    part = store.put([stack[1], stack[1], stack.T])
    assert part.path.stat().st_size < 400
    assert all(map(torch.equal, store.get(part), [stack[1], stack[1], stack.T]))
    twice = [stack, stack.view(torch.int32), stack.flip(0)]
    assert all(map(torch.equal, store.get(store.put(twice)), twice))
    empty = [torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), torch.tensor(5)]
    assert all(map(torch.equal, store.get(store.put(empty)), empty))


def test_if_all_folders_are_full_the_run_fails(tmp_path, full):
    """The error names the folders."""
    both = folders(tmp_path)
    full.update(both)
    with pytest.raises(RunError, match="No space left on device") as caught:
        TensorStore(both, "me").put(TREE)
    assert str(tmp_path) in caught.value.where
    assert "TMPDIR" in caught.value.hint
    assert [list(one.iterdir()) for one in both] == [[], []]


def test_folders_of_killed_processes_are_removed(tmp_path):
    """The next process that makes a folder removes them; folders of running processes and others stay."""
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


def test_one_thread_copies(tmp_path, monkeypatch):
    """More would wait for cores on which others train; afterwards there are as many as before."""
    seen: list[int] = []

    class Noted(torch.Tensor):
        def clone(self):
            seen.append(torch.get_num_threads())
            return torch.ones(1, 3)

    store = TensorStore([tmp_path], "a")
    file, before = store.put({"x": torch.ones(3)}), torch.get_num_threads()
    monkeypatch.setattr(tensor_store, "_mapped", lambda _: [torch.ones(1, 3).as_subclass(Noted)])
    torch.set_num_threads(2)
    try:
        store.get(file)
        assert (seen, torch.get_num_threads()) == ([1], 2)
    finally:
        torch.set_num_threads(before)
