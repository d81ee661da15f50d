"""Trees that other processes read: their structure as plain data, their tensors in a safetensors file.

Files lie in shared memory where it has room, so that what many workers read is in memory once. A tree comes
back with its keys in their order: a sum over leaves in another order has other bits.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from edgefl.compute.folders import owned_folder
from edgefl.core.errors import RunError
from edgefl.protocol import leaves, tree_map

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where POSIX systems have it
# Shared memory is used where this many times the size of the dataset is free.
_AMPLE = 4


class TensorFile(NamedTuple):
    """A tree whose tensors lie in a file.

    Attributes:
        path: the file; None where the tree has no tensors.
        skeleton: see ``split_tensors``.
    """

    path: Path | None
    skeleton: Any


class TensorStore:
    """Folders of tensor files; each process gives its files names of their own.

    Attributes:
        folders: a file goes to the first that has room.
    """

    def __init__(self, folders: Sequence[Path], sender: str) -> None:
        self.folders = tuple(folders)
        self._names = (f"{sender}-{number}.safetensors" for number in count())

    def put(self, tree: Any) -> TensorFile:
        """Writes a tree; leaves that are not tensors go with the skeleton, which is pickled.

        Raises:
            RunError: no folder has room.
        """
        skeleton, buffers = split_tensors(tree)
        if not buffers:
            return TensorFile(None, skeleton)
        return TensorFile(self._save({str(number): one for number, one in enumerate(buffers)}), skeleton)

    def _save(self, tensors: dict[str, Tensor]) -> Path:
        name, failures = next(self._names), []
        for folder in self.folders:
            path = folder / name
            try:
                save_file(tensors, path)
            except (OSError, SafetensorError) as error:
                path.unlink(missing_ok=True)
                failures.append(f"{folder.parent}: {error}")
            else:
                return path
        raise RunError(
            f"no room for the tensors that workers exchange: {'; '.join(failures)}",
            where=" and ".join(str(folder.parent) for folder in self.folders),
            hint="use fewer workers or a smaller group, or set TMPDIR to a folder with more room",
        )

    def get(self, file: TensorFile, *, last: bool = False) -> Any:
        """The tree in memory of its own.

        In a file tensors start at odd addresses, where kernels round differently than in memory that torch
        allocates.

        Args:
            file: from ``put`` of any process.
            last: whether to delete the file, since no other process will read it.
        """
        buffers = [one.clone() for one in _mapped(file)]
        if last:
            self.drop(file)
        return join_tensors(file.skeleton, buffers)

    def borrow(self, file: TensorFile) -> Any:
        """The tree in the file's own pages, for what is too large to copy and not computed with."""
        return join_tensors(file.skeleton, _mapped(file))

    def drop(self, file: TensorFile) -> None:
        """Deletes a file."""
        if file.path:
            file.path.unlink(missing_ok=True)


def _mapped(file: TensorFile) -> list[Tensor]:
    """The file's pages as tensors, by their numbers; they outlive the file."""
    tensors = load_file(file.path) if file.path else {}
    return [tensors[str(number)] for number in range(len(tensors))]


@dataclass(frozen=True, slots=True)
class _Slot:
    """The place of a tensor: from an element of a buffer on, row after row."""

    buffer: int
    start: int
    shape: torch.Size


def split_tensors(tree: Any) -> tuple[Any, list[Tensor]]:
    """A tree as plain data that can be pickled, and flat buffers with its tensors' values.

    Tensors that fill an allocation together, such as the rows of a stack, share one buffer: what a group of
    clients sends is a buffer a leaf, however many the clients.

    Returns:
        The skeleton, which is the tree with places in the buffers for tensors, and the buffers. No two
        buffers share memory, which the safetensors format would refuse.
    """
    used: Counter[tuple[int, torch.dtype]] = Counter()
    for leaf in leaves(tree):
        if isinstance(leaf, Tensor):
            used[_allocation(leaf)] += leaf.nbytes
    buffers: list[Tensor] = []
    numbers: dict[tuple[int, torch.dtype], int] = {}

    def slot(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        allocation, allocated = _allocation(leaf), leaf.untyped_storage().nbytes()
        if not leaf.is_contiguous() or used[allocation] < allocated:
            alone = used[allocation] == leaf.nbytes
            values = leaf.contiguous() if alone else leaf.clone(memory_format=torch.contiguous_format)
            buffers.append(values.view(-1))
            return _Slot(len(buffers) - 1, 0, leaf.shape)
        if allocation not in numbers:
            numbers[allocation] = len(buffers)
            buffers.append(leaf.as_strided((allocated // leaf.element_size(),), (1,), 0))
        return _Slot(numbers[allocation], int(leaf.storage_offset()), leaf.shape)

    return tree_map(slot, tree), buffers


def _allocation(leaf: Tensor) -> tuple[int, torch.dtype]:
    return leaf.untyped_storage().data_ptr(), leaf.dtype


def join_tensors(skeleton: Any, buffers: Sequence[Tensor]) -> Any:
    """The tree that ``split_tensors`` split; its tensors are views of the buffers."""

    def tensor(leaf: Any) -> Any:
        if not isinstance(leaf, _Slot):
            return leaf
        return buffers[leaf.buffer][leaf.start : leaf.start + leaf.shape.numel()].view(leaf.shape)

    return tree_map(tensor, skeleton)


def shared_folders(needed_bytes: int) -> list[Path]:
    """Fresh folders for tensor files: in shared memory if it has ample room, and in the temporary folder.

    Args:
        needed_bytes: what lies there for the whole run.
    """
    enough = _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > _AMPLE * needed_bytes
    parents = [_SHARED_MEMORY, None] if enough else [None]
    return [owned_folder("edgefl-", parent) for parent in parents]
