"""Trees on their way to other processes: torch's own files, which are mapped without a copy.

There every tensor begins at a multiple of 64 bytes, as in memory that torch allocates: at odd addresses
kernels round differently. A tree comes back with its keys in their order: sums in another have other bits.
"""

import os
import platform
import shutil
import tempfile
from pathlib import Path
from typing import IO, Any, NamedTuple
from uuid import uuid4

import psutil
import torch
from torch import Tensor

from edgefl.core.errors import RunError
from edgefl.protocol import leaves, tree_map

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where POSIX systems have it
# Shared memory is used where so much is free, and this many times the size of the dataset.
_FREE_BYTES, _AMPLE = 10**9, 4


def write(tree: Any, file: IO[bytes]) -> None:
    """Writes a tree; a tensor at several places stays one, by which stacking knows what clients share."""
    own = {id(leaf): _own(leaf) for leaf in leaves(tree)}
    torch.save(tree_map(lambda leaf: own[id(leaf)], tree), file)


def _own(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    # Of a view, torch would write all memory that it is part of.
    whole = leaf.is_contiguous() and leaf.nbytes == leaf.untyped_storage().nbytes()
    return leaf.detach() if whole else leaf.detach().clone(memory_format=torch.contiguous_format)


def sweep() -> str:
    """What this process's folders' names begin with; removes the folders of processes that were killed."""
    # A process's number is one of a host since its start, and of a namespace, such as a container's.
    space, boot = Path("/proc/self/ns/pid"), Path("/proc/sys/kernel/random/boot_id")
    known = space.exists() and boot.exists()
    host = boot.read_text()[:8] + str(space.stat().st_ino) if known else platform.node()
    begin = f"edgefl-{host.replace('-', '')}-"
    for place in (_SHARED_MEMORY, Path(tempfile.gettempdir())):
        for left in place.glob(f"{begin}*"):
            number = left.name.split("-")[2]
            if number.isdecimal() and not psutil.pid_exists(int(number)):
                shutil.rmtree(left, ignore_errors=True)
    return f"{begin}{os.getpid()}-"


class Files(NamedTuple):
    """Trees as files in a folder, for processes of one machine."""

    folder: Path

    @classmethod
    def fresh(cls, needed_bytes: int) -> "Files":
        """A fresh folder: in shared memory where that has room for what is always there, and ample."""
        prefix = sweep()
        free = shutil.disk_usage(_SHARED_MEMORY).free if _SHARED_MEMORY.is_dir() else 0
        parent = _SHARED_MEMORY if free > _FREE_BYTES + _AMPLE * needed_bytes else None
        return cls(Path(tempfile.mkdtemp(prefix=prefix, dir=parent)))

    def put(self, tree: Any) -> Path:
        """Raises a ``RunError`` where the folder has no room."""
        path = self.folder / uuid4().hex
        try:
            with path.open("wb") as file:
                write(tree, file)
        except (OSError, RuntimeError) as error:
            path.unlink(missing_ok=True)
            raise RunError(
                # torch's own error says that less was written than expected; why, the one before it.
                f"no room for the tensors that workers exchange: {error.__context__ or error}",
                where=str(self.folder.parent),
                hint="use fewer workers, or a smaller group",
            ) from error
        return path

    def get(self, path: Path) -> Any:
        """A tree in the file's own pages, which outlive it; what is written to them stays here."""
        return torch.load(path, mmap=True, weights_only=False)

    def drop(self, path: Path) -> None:
        path.unlink(missing_ok=True)
