"""Trees on their way to other processes: torch's own files, which are mapped without a copy.

There every tensor begins at a multiple of 64 bytes, as in memory that torch allocates: at odd addresses
kernels round differently. A tree comes back with its keys in their order: sums in another have other bits.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import IO, Any, NamedTuple
from uuid import uuid4

import torch
from torch import Tensor

from edgefl.core.errors import RunError
from edgefl.protocol import tree_map

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where POSIX systems have it
# Shared memory is used where this many times the size of the dataset is free.
_AMPLE = 4


def write(tree: Any, file: IO[bytes]) -> None:
    """Writes a tree; one tensor at several places is several, since stacking would take it for shared."""
    torch.save(tree_map(_own, tree), file)


def read(file: Path | IO[bytes]) -> Any:
    """A tree: a path's in the file's own pages, which outlive it; what is written to them stays here."""
    return torch.load(file, mmap=isinstance(file, Path), weights_only=False)


def _own(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    # Of a view, torch would write all memory that it is part of.
    whole = leaf.is_contiguous() and leaf.nbytes == leaf.untyped_storage().nbytes()
    return leaf.detach() if whole else leaf.detach().clone(memory_format=torch.contiguous_format)


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
        # By its name one sees whose a folder is that was left.
        prefix = f"edgefl-{os.getpid()}-"
        return cls(tuple(Path(tempfile.mkdtemp(prefix=prefix, dir=parent)) for parent in parents))

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
                    write(tree, file)
            except (OSError, RuntimeError) as error:
                path.unlink(missing_ok=True)
                # torch's own error says that less was written than expected; why, the one before it.
                failures.append(f"{folder.parent}: {error.__context__ or error}")
            else:
                return path
        raise RunError(
            f"no room for the tensors that workers exchange: {'; '.join(failures)}",
            where=" and ".join(str(folder.parent) for folder in self.folders),
            hint="use fewer workers or a smaller group, or set TMPDIR to a folder with more room",
        )

    def get(self, path: Path) -> Any:
        """The tree; see ``read``."""
        return read(path)

    def drop(self, path: Path) -> None:
        """Deletes a file."""
        path.unlink(missing_ok=True)
