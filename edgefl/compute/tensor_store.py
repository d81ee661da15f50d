"""Trees that other processes read: their structure as plain data, their tensors in a safetensors file.

Files lie in shared memory where it has room, so that what many workers read is in memory once. A tree comes
back with its keys in their order: a sum over leaves in another order has other bits.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from edgefl.compute.folders import owned_folder
from edgefl.compute.threads import one_thread
from edgefl.core.errors import RunError
from edgefl.protocol import tree_map

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where POSIX systems have it
# Shared memory is used where this many times the size of the dataset is free.
_AMPLE = 4


class TensorFile(NamedTuple):
    """A tree whose tensors lie in a file.

    Attributes:
        path: the file; None where the tree has no tensors.
        skeleton: the tree without its tensors.
    """

    path: Path | None
    skeleton: Skeleton


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
        allocates. One thread copies: more would wait for the cores on which others train.

        Args:
            file: from ``put`` of any process.
            last: whether to delete the file, since no other process will read it.
        """
        with one_thread():
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


class _Slot:
    """Marks the place of a tensor."""


class Skeleton(NamedTuple):
    """A tree without its tensors, as plain data that can be pickled.

    Attributes:
        tree: the tree with ``_Slot`` in the places of tensors.
        buffers: for each of them the number of its buffer; its tensors are the buffer's rows in their order.
    """

    tree: Any
    buffers: list[int]


def split_tensors(tree: Any) -> tuple[Skeleton, list[Tensor]]:
    """A tree as its skeleton, and buffers (rows, ...) with its tensors' values, each in memory of its own.

    The rows of a stack, if all are in the tree in their order, are one buffer: the uploads of a group of
    clients are a buffer for each leaf, however many the clients. Any other tensor is a buffer of one row.
    """
    tensors: list[Tensor] = []

    def taken(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        tensors.append(leaf)
        return _Slot

    bare = tree_map(taken, tree)
    by_storage: dict[int, list[int]] = defaultdict(list)
    for place, leaf in enumerate(tensors):
        by_storage[leaf.untyped_storage().data_ptr()].append(place)
    numbers, buffers = [0] * len(tensors), list[Tensor]()
    for places in by_storage.values():
        rows = [tensors[place] for place in places]
        stack = _stack(rows)
        if stack is None:
            own = rows if len(rows) == 1 else [row.clone() for row in rows]
            stacks = [row.contiguous().unsqueeze(0) for row in own]
        else:
            stacks = [stack]
        for nth, place in enumerate(places):
            numbers[place] = len(buffers) + min(nth, len(stacks) - 1)
        buffers += stacks
    return Skeleton(bare, numbers), buffers


def _stack(rows: Sequence[Tensor]) -> Tensor | None:
    """The tensor whose rows the tensors of one storage are, in order; None if there is none."""
    first, size = rows[0], rows[0].numel()
    # One tensor several times, such as the rows of an expanded one, is a stack of one row.
    step = rows[1].storage_offset() if len(rows) > 1 else 0
    count = len(rows) if step else 1
    if step not in {0, size} or count * first.nbytes != first.untyped_storage().nbytes():
        return None
    for place, row in enumerate(rows):
        alike = row.shape == first.shape and row.dtype == first.dtype and row.is_contiguous()
        if not alike or row.storage_offset() != place * step:
            return None
    return first.as_strided((count, *first.shape), (size, *first.stride()))


def join_tensors(skeleton: Skeleton, buffers: Sequence[Tensor]) -> Any:
    """The tree that ``split_tensors`` split; its tensors are views of the buffers."""
    rows = [_rows(buffer) for buffer in buffers]
    tensors = (next(rows[number]) for number in skeleton.buffers)
    return tree_map(lambda leaf: next(tensors) if leaf is _Slot else leaf, skeleton.tree)


def _rows(buffer: Tensor) -> Iterator[Tensor]:
    """A buffer's rows, again and again: one row of several leaves is a tensor for each.

    A leaf that is the very same for several clients would be taken for shared by all where they are stacked.
    """
    while True:
        yield from buffer.unbind()


def shared_folders(needed_bytes: int) -> list[Path]:
    """Fresh folders for tensor files: in shared memory if it has ample room, and in the temporary folder.

    Args:
        needed_bytes: what lies there for the whole run.
    """
    enough = _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > _AMPLE * needed_bytes
    parents = [_SHARED_MEMORY, None] if enough else [None]
    return [owned_folder("edgefl-", parent) for parent in parents]
