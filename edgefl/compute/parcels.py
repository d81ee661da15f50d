"""Trees on their way to another process: their shape as plain data, their tensors in a safetensors file.

Files lie in shared memory where there is any and it has room, so that what many workers read is there once. A
tree comes back with its keys in their order: a sum over leaves in another order has other bits.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from edgefl.compute.folders import owned_folder
from edgefl.core.errors import RunError

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where POSIX systems have it
_ROOM = 4


class Parcel(NamedTuple):
    """A tree that lies in a file.

    Attributes:
        path: the file; None where the tree has no tensors.
        shape: the tree with the numbers of its tensors in their places.
    """

    path: Path | None
    shape: Any


class Depot:
    """Folders for parcels; every process gives its own files names of their own.

    Attributes:
        folders: where parcels lie: in the first that has room.
    """

    def __init__(self, folders: Sequence[Path], sender: str) -> None:
        self.folders = tuple(folders)
        self._names = (f"{sender}-{number}.safetensors" for number in count())

    def put(self, tree: Any) -> Parcel:
        """Writes a tree of dicts, lists and tensors; other leaves travel in the shape.

        Raises:
            RunError: no folder has room.
        """
        shape, tensors = taken_apart(tree)
        if not tensors:
            return Parcel(None, shape)
        # The format refuses tensors that share memory, as the rows of a stack and an expanded one do.
        own = {str(place): leaf.contiguous() for place, leaf in enumerate(tensors)}
        seen: set[int] = set()
        for name, leaf in own.items():
            start = leaf.untyped_storage().data_ptr()
            own[name] = leaf.clone() if start in seen else leaf
            seen.add(start)
        return Parcel(self._saved(own), shape)

    def _saved(self, tensors: dict[str, Tensor]) -> Path:
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
            f"what workers are sent finds no room: {'; '.join(failures)}",
            where=" and ".join(str(folder.parent) for folder in self.folders),
            hint="take fewer workers or a smaller group, or let TMPDIR be where there is more room",
        )

    def get(self, parcel: Parcel, *, last: bool = False) -> Any:
        """The tree in memory of its own.

        A file's tensors lie at odd addresses, where kernels round otherwise than in memory that torch gave.

        Args:
            parcel: from ``put`` of any process.
            last: whether nobody else wants it, so that the file is deleted.
        """
        tensors = [leaf.clone() for leaf in _mapped(parcel)]
        if last:
            self.drop(parcel)
        return put_together(parcel.shape, tensors)

    def borrow(self, parcel: Parcel) -> Any:
        """The tree in the file's own pages, for what is too large to copy and nobody calculates with."""
        return put_together(parcel.shape, _mapped(parcel))

    def drop(self, parcel: Parcel) -> None:
        """Deletes a parcel's file."""
        if parcel.path:
            parcel.path.unlink(missing_ok=True)


def _mapped(parcel: Parcel) -> list[Tensor]:
    """The file's pages as tensors, in the order of their numbers; they stay after the file is gone."""
    tensors = load_file(parcel.path) if parcel.path else {}
    return [tensors[str(place)] for place in range(len(tensors))]


class _Place(NamedTuple):
    """Where a tensor stands."""

    number: int


def taken_apart(tree: Any) -> tuple[Any, list[Tensor]]:
    """A tree of dicts and lists as plain data with the numbers of its tensors in their places, and these."""
    tensors: list[Tensor] = []
    return _numbered(tree, tensors), tensors


def put_together(shape: Any, tensors: Sequence[Tensor]) -> Any:
    """The tree that ``taken_apart`` took apart."""
    if isinstance(shape, _Place):
        return tensors[shape.number]
    if isinstance(shape, dict):
        return {key: put_together(inner, tensors) for key, inner in shape.items()}
    if isinstance(shape, list):
        return [put_together(inner, tensors) for inner in shape]
    return shape


def _numbered(tree: Any, tensors: list[Tensor]) -> Any:
    if isinstance(tree, Tensor):
        tensors.append(tree)
        return _Place(len(tensors) - 1)
    if isinstance(tree, dict):
        return {key: _numbered(inner, tensors) for key, inner in tree.items()}
    if isinstance(tree, list):
        return [_numbered(inner, tensors) for inner in tree]
    return tree


def shared_folders(needed_bytes: int) -> list[Path]:
    """Fresh folders for parcels: in shared memory where it has ample room, and in the temporary folder.

    Args:
        needed_bytes: what lies there for the whole run.
    """
    ample = _ROOM * needed_bytes
    inside = _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > ample
    parents = [_SHARED_MEMORY, None] if inside else [None]
    return [owned_folder("edgefl-", parent) for parent in parents]
