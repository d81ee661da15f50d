"""Trees on their way to other processes: pickles whose tensors follow them, to be mapped without a copy.

Every tensor begins at a multiple of 64 bytes, as in memory that torch allocates: at odd addresses kernels
round differently. A tree comes back with its keys in their order: sums in another have other bits.
"""

from __future__ import annotations

import io
import mmap
import pickle
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
import torch
from torch import Tensor

from edgefl.core.errors import RunError

_ALIGNED = 64
_LENGTH = 8
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where POSIX systems have it
# Shared memory is used where this many times the size of the dataset is free.
_AMPLE = 4


class _Pickler(pickle.Pickler):
    """Leaves tensors out of the pickle.

    Attributes:
        placed: by its ``id``, each tensor, its bytes and where they begin, counted from the first tensor's.
        length: of all bytes.
    """

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)
        self.placed: dict[int, tuple[Tensor, Any, int]] = {}
        self.length = 0

    def persistent_id(self, obj: Any) -> Any:
        """A tensor's place, type and shape."""
        if not isinstance(obj, Tensor):
            return None
        if id(obj) not in self.placed:
            data = obj.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
            self.placed[id(obj)] = obj, data, self.length
            self.length += len(data) + -len(data) % _ALIGNED
        return self.placed[id(obj)][2], obj.dtype, tuple(obj.shape)


class _Unpickler(pickle.Unpickler):
    """Makes tensors of the bytes behind the pickle.

    One tensor that was sent several times is several: stacking would take it for shared.
    """

    def __init__(self, stream: io.BytesIO, data: Tensor) -> None:
        super().__init__(stream)
        self._data = data

    def persistent_load(self, pid: Any) -> Tensor:
        """The tensor at a place."""
        start, dtype, shape = pid
        end = start + dtype.itemsize * int(np.prod(shape))
        return self._data[start:end].view(dtype).view(shape)


def pieces(tree: Any) -> Iterator[Any]:
    """A tree's bytes, piece after piece."""
    stream = io.BytesIO()
    pickler = _Pickler(stream)
    pickler.dump(tree)
    head = stream.tell()
    yield head.to_bytes(_LENGTH, "little")
    yield stream.getvalue()
    yield bytes(-(_LENGTH + head) % _ALIGNED)
    for _, data, _ in pickler.placed.values():
        yield data
        yield bytes(-len(data) % _ALIGNED)


def tree_of(memory: Tensor) -> Any:
    """The tree of ``pieces``; its tensors are views of the memory, of bytes."""
    head = _LENGTH + int.from_bytes(memory[:_LENGTH].numpy().tobytes(), "little")
    data = memory[head + -head % _ALIGNED :]
    return _Unpickler(io.BytesIO(memory[_LENGTH:head].numpy().tobytes()), data).load()


class Files(NamedTuple):
    """Trees as files, for processes of one machine.

    Attributes:
        folders: a file goes to the first that has room.
    """

    folders: tuple[Path, ...]

    @classmethod
    def fresh(cls, needed_bytes: int) -> Files:
        """Fresh folders: in shared memory if it has ample room, and in the temporary folder.

        Args:
            needed_bytes: what lies there for the whole run.
        """
        ample = _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > _AMPLE * needed_bytes
        parents = [_SHARED_MEMORY, None] if ample else [None]
        return cls(tuple(Path(tempfile.mkdtemp(prefix="edgefl-", dir=parent)) for parent in parents))

    def put(self, tree: Any) -> Path:
        """Writes a tree.

        Raises:
            RunError: no folder has room.
        """
        failures = []
        for folder in self.folders:
            path = folder / uuid4().hex
            try:
                with path.open("wb") as file:
                    file.writelines(pieces(tree))
            except OSError as error:
                path.unlink(missing_ok=True)
                failures.append(f"{folder.parent}: {error}")
            else:
                return path
        raise RunError(
            f"no room for the tensors that workers exchange: {'; '.join(failures)}",
            where=" and ".join(str(folder.parent) for folder in self.folders),
            hint="use fewer workers or a smaller group, or set TMPDIR to a folder with more room",
        )

    def get(self, path: Path) -> Any:
        """The tree in the file's own pages, which outlive the file; what is written to them stays here."""
        with path.open("rb") as file:
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        return tree_of(torch.frombuffer(pages, dtype=torch.uint8))

    def drop(self, path: Path) -> None:
        """Deletes a file."""
        path.unlink(missing_ok=True)
