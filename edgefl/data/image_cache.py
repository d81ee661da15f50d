"""Decoded images in the user's cache, so that they are decoded once and not in every process.

An entry is a safetensors file, which is mapped into memory. Its name is a hash of how the images were decoded
and of the encoded files' paths, sizes, inodes and times of change, so a file that changed has another entry.
Anything that is missing, cannot be written or was damaged is decoded again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from edgefl.core.errors import DataError, RunError
from edgefl.core.files import cache_folder, replacing
from edgefl.data.spec import Arrays, moments

MOST_BYTES = 20 * 10**9
"""Of all entries; those that were not used for longest are removed."""

# Raised when entries are made in another way.
_FORMAT = 2
# A file that changed this recently could change again without a new time: file systems count in ticks.
_SETTLED_NS = 2 * 10**9


@dataclass(frozen=True)
class Decoded:
    """Decoded images and what is computed of them.

    Attributes:
        arrays: the images, a pixel's channels side by side in memory.
        mean: of the training pixels in [0, 1], one per channel.
        std: likewise.
        content: a hash of all images and labels.
    """

    arrays: Arrays
    mean: tuple[float, ...]
    std: tuple[float, ...]
    content: str


def decoded_once(files: Sequence[Path], how: Mapping[str, Any], decode: Callable[[], Arrays]) -> Decoded:
    """The images of files, from the cache if they were decoded before.

    Args:
        files: all that ``decode`` reads, in an order that depends on their names alone.
        how: everything else that its result depends on, as plain data.
        decode: reads and decodes the files.

    Raises:
        DataError: a file cannot be read; see ``decode`` too.
    """
    before = _states(files)
    key = json.dumps([before, _FORMAT, version("pillow"), dict(how)], sort_keys=True)
    entry = cache_folder() / "images" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.safetensors"
    found = _read(entry)
    if found is None:
        arrays = decode()
        whole = hashlib.sha256()
        for part in _bytes(_laid_out(arrays)):
            whole.update(part)
        found = Decoded(arrays, *moments(arrays.train_x), whole.hexdigest()[:32])
        settled = max((max(state[2:4]) for state in before), default=0) < time.time_ns() - _SETTLED_NS
        if settled and _states(files) == before:
            with suppress(
                OSError, RunError, SafetensorError
            ):  # without space, or a folder that can be written
                _write(entry, found)
    return found


def _states(files: Sequence[Path]) -> list[list[Any]]:
    """What tells whether a file is still the same, without reading it.

    The time of an inode's change cannot be set back, as that of its content can.
    """
    states = []
    for path in files:
        try:
            found = path.stat()
        except OSError as error:
            raise DataError(f"cannot read {path.name}: {error.strerror or error}", where=str(path)) from error
        states.append(
            [str(path.absolute()), found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
        )
    return states


def _laid_out(arrays: Arrays) -> dict[str, Any]:
    """The arrays that there are, as they lie in memory and in their file: images as (N, H, W, C)."""
    found = {field.name: getattr(arrays, field.name) for field in fields(arrays)}
    return {
        name: np.ascontiguousarray(array.transpose(0, 2, 3, 1) if name.endswith("_x") else array)
        for name, array in found.items()
        if array is not None
    }


def _bytes(arrays: Mapping[str, Any]) -> Iterator[Any]:
    """All that is hashed of the arrays."""
    for name, array in sorted(arrays.items()):
        yield repr((name, array.shape)).encode()
        yield array.reshape(-1).view(np.uint8)


def _check(arrays: Mapping[str, Any], facts: str) -> str:
    check = zlib.crc32(facts.encode())
    for part in _bytes(arrays):
        check = zlib.crc32(part, check)
    return str(check)


def _read(entry: Path) -> Decoded | None:
    """An entry, if it is whole; changes to its arrays stay in this process."""
    try:
        with safe_open(entry, "pt") as file:
            arrays = {name: file.get_tensor(name).numpy() for name in file.keys()}  # noqa: SIM118
            metadata = file.metadata()
        if metadata["check"] != _check(arrays, metadata["facts"]):
            return None
        os.utime(entry)  # for ``_make_room``
    except (OSError, SafetensorError, ValueError, TypeError, KeyError):
        return None
    mean, std, content = json.loads(metadata["facts"])
    shown = {
        name: array.transpose(0, 3, 1, 2) if name.endswith("_x") else array for name, array in arrays.items()
    }
    return Decoded(Arrays(**shown), tuple(mean), tuple(std), content)


def _write(entry: Path, found: Decoded) -> None:
    arrays = _laid_out(found.arrays)
    facts = json.dumps([found.mean, found.std, found.content])
    size = sum(array.nbytes for array in arrays.values())
    entry.parent.mkdir(parents=True, exist_ok=True)
    if size > MOST_BYTES or size > shutil.disk_usage(entry.parent).free / 2:
        return
    _make_room(entry.parent, size)
    with replacing(entry) as temporary:
        save_file(arrays, temporary, {"facts": facts, "check": _check(arrays, facts)})


def _make_room(folder: Path, size: int) -> None:
    """Removes what was not used for longest until ``size`` more bytes keep to the limit."""
    entries = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in folder.iterdir())
    total = size + sum(one for _, one, _ in entries)
    for _, one, path in entries:
        if total > MOST_BYTES:
            path.unlink(missing_ok=True)
            total -= one
