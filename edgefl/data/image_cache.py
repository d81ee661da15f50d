"""Decoded images in the user's cache, so that they are decoded once and not in every process.

An entry is an NPZ file, whose parts have checksums. Its name is a hash of how the images were decoded and of
the encoded files' paths, sizes, inodes and times of change, so a file that changed has another entry. What is
missing, cannot be written or was damaged is decoded again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.core.errors import RunError
from edgefl.core.files import cache_folder, replacing
from edgefl.data.dataset import Arrays, moments
from edgefl.data.images import explained


def decoded_once(files: Sequence[Path], how: Mapping[str, Any], decode: Callable[[], Arrays]) -> Arrays:
    """The images of files with their moments and their content's hash, from the cache if decoded before.

    Args:
        files: all that ``decode`` reads, in an order that depends on their names alone.
        how: everything else that its result depends on, as plain data.
        decode: reads and decodes the files.

    Raises:
        DataError: a file cannot be read; see ``decode`` too.
    """
    key = json.dumps([list(map(_state, files)), version("pillow"), dict(how)], sort_keys=True)
    entry = cache_folder() / "images" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npz"
    with suppress(Exception):  # it is not there, or damaged, of which anything can follow
        return _read(entry)
    arrays = decode()
    rows, content = _rows(arrays), hashlib.sha256()
    for name, array in sorted(rows.items()):
        content.update(repr((name, array.shape)).encode())
        content.update(array)
    mean, std = moments(arrays.train_x)
    found = replace(arrays, mean=mean, std=std, content=content.hexdigest()[:32])
    # Without space, or a folder that can be written.
    with suppress(OSError, RunError):
        entry.parent.mkdir(parents=True, exist_ok=True)
        with replacing(entry) as temporary, temporary.open("wb") as file:
            np.savez(file, **rows, mean=mean, std=std, content=found.content)
    return found


def _state(path: Path) -> list[Any]:
    """What tells whether a file is still the same, without reading it.

    The time of an inode's change cannot be set back, as that of its content can.
    """
    with explained(f"cannot read {path.name}", str(path)):
        found = path.stat()
    return [str(path.absolute()), found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def _rows(arrays: Arrays) -> dict[str, Any]:
    """The arrays that there are, as they lie in memory and in their file: images as (N, H, W, C)."""
    return {
        name: np.ascontiguousarray(value.transpose(0, 2, 3, 1) if name.endswith("_x") else value)
        for name, value in vars(arrays).items()
        if isinstance(value, np.ndarray)
    }


def _read(entry: Path) -> Arrays:
    """An entry.

    Raises:
        Exception: it is not there, or damaged.
    """
    with entry.open("rb") as opened, np.load(opened) as file:
        rows = dict(file)
    mean, std = (tuple(rows.pop(name).tolist()) for name in ("mean", "std"))
    images = {name: rows.pop(name).transpose(0, 3, 1, 2) for name in ("train_x", "test_x")}
    return Arrays(**images, mean=mean, std=std, content=str(rows.pop("content")), **rows)
