"""Decoded images in the user's cache, so that they are decoded once and not in every process.

An entry is a folder ``images/<key>`` in the cache: the arrays as ``.npy`` files, which are mapped into
memory, and ``facts.json``. Its key is a hash of the encoded files' content and of how they were decoded, so a
file that changed has another entry. Content is hashed once for each state of the files: ``images/seen`` has
the entry of a list of files by their paths, sizes, inodes and times of change. Anything that is missing,
cannot be written or was damaged is decoded again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.core.caches import cache_folder
from edgefl.core.errors import DataError, RunError
from edgefl.core.files import atomically
from edgefl.data.spec import Arrays, moments

MOST_BYTES = 20 * 10**9
"""Of all entries; those that were not used for longest are removed."""

# Raised when entries are made in another way.
_FORMAT = 1
# A file that changed this recently could change again without a new time: file systems count in ticks.
_SETTLED_S = 2.0
# Left over by a process that was killed.
_ABANDONED_S = 24 * 3600.0
_ARRAYS = tuple(field.name for field in fields(Arrays))


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
    folder, before = cache_folder() / "images", _states(files)
    made_by = {"format": _FORMAT, "pillow": version("pillow"), "how": dict(how)}
    seen = folder / "seen" / _hash([before, made_by])
    found = _read(folder / _text(seen))
    if found is None:
        key = _hash([[_content(path) for path in files], made_by])
        found = _read(folder / key)
        if found is None:
            found = _facts_of(decode())
            if _states(files) != before:
                return found
            _write(folder, key, found)
        if _settled(before):
            with suppress(OSError, RunError):
                seen.parent.mkdir(parents=True, exist_ok=True)
                atomically(seen, key.encode())
    return found


# --- what the files are


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


def _settled(states: Sequence[Sequence[Any]]) -> bool:
    latest = max((max(state[2], state[3]) for state in states), default=0)
    return time.time_ns() - latest > _SETTLED_S * 1e9


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot read {path.name}: {error.strerror or error}", where=str(path)) from error


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def _facts_of(arrays: Arrays) -> Decoded:
    whole = hashlib.sha256()
    for name, array in _present(arrays).items():
        whole.update(repr((name, array.shape)).encode())
        whole.update(array.reshape(-1).view(np.uint8))
    return Decoded(arrays, *moments(arrays.train_x), whole.hexdigest()[:32])


# --- entries


def _present(arrays: Arrays) -> dict[str, Any]:
    """The arrays that there are, as they lie in memory and in their files: images as (N, H, W, C)."""
    found = {name: getattr(arrays, name) for name in _ARRAYS}
    return {
        name: np.ascontiguousarray(array.transpose(0, 2, 3, 1) if name.endswith("_x") else array)
        for name, array in found.items()
        if array is not None
    }


def _text(path: Path) -> str:
    """A key's text, or a name that no entry has."""
    try:
        return path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return "none"


def _read(entry: Path) -> Decoded | None:
    """An entry, if it is whole."""
    try:
        facts = json.loads((entry / "facts.json").read_text(encoding="utf-8"))
        checks = facts["checks"]
        loaded = {name: _mapped(entry / f"{name}.npy", checks[name]) for name in checks}
        found = Decoded(Arrays(**loaded), tuple(facts["mean"]), tuple(facts["std"]), str(facts["content"]))
        if facts["check"] != _check_of(found, checks):
            return None
    except (OSError, ValueError, TypeError, KeyError, EOFError):
        return None
    with suppress(OSError):
        os.utime(entry / "facts.json")  # for ``_make_room``
    return found


def _mapped(path: Path, check: int) -> Any:
    """An array mapped into memory; changes to it stay in this process.

    Raises:
        ValueError: it is not what was written.
    """
    array = np.load(path, mmap_mode="c", allow_pickle=False)
    if not array.size or zlib.crc32(array.reshape(-1).view(np.uint8)) != check:
        raise ValueError(f"{path.name} is damaged")
    # A plain array: operators on numpy.memmap make further ones, which costs time.
    array = np.asarray(array)
    return array.transpose(0, 3, 1, 2) if path.stem.endswith("_x") else array


def _check_of(found: Decoded, checks: Mapping[str, int]) -> str:
    return _hash([found.mean, found.std, found.content, dict(checks)])


def _write(folder: Path, key: str, found: Decoded) -> None:
    """Adds an entry under its final name when it is complete; without space for it, adds none."""
    arrays = _present(found.arrays)
    size = sum(array.nbytes for array in arrays.values())
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if size > MOST_BYTES or size > shutil.disk_usage(folder).free / 2:
            return
        _make_room(folder, size)
        checks = {name: zlib.crc32(array.reshape(-1).view(np.uint8)) for name, array in arrays.items()}
        facts = {"mean": found.mean, "std": found.std, "content": found.content, "checks": checks}
        with tempfile.TemporaryDirectory(prefix="new-", dir=folder, ignore_cleanup_errors=True) as name:
            new = Path(name) / "entry"
            new.mkdir()
            for array_name, array in arrays.items():
                np.save(new / f"{array_name}.npy", array, allow_pickle=False)
            text = json.dumps({**facts, "check": _check_of(found, checks)})
            (new / "facts.json").write_text(text, encoding="utf-8")
            # What stands under the name was damaged, or another process has just written the same.
            shutil.rmtree(folder / key, ignore_errors=True)
            new.rename(folder / key)


def _make_room(folder: Path, size: int) -> None:
    """Removes what was not used for longest until ``size`` more bytes keep to the limit."""
    entries = []
    for path in folder.iterdir():
        if path.name.startswith("new-") and time.time() - path.stat().st_mtime > _ABANDONED_S:
            shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):
            used = (path / "facts.json").stat().st_mtime
            entries.append((used, path, sum(file.stat().st_size for file in path.iterdir())))
    total = size + sum(entry_size for *_, entry_size in entries)
    for _, path, entry_size in sorted(entries):
        if total <= MOST_BYTES:
            break
        shutil.rmtree(path, ignore_errors=True)
        total -= entry_size
    for path in (folder / "seen").glob("*"):
        if not (folder / _text(path)).is_dir():
            path.unlink(missing_ok=True)
