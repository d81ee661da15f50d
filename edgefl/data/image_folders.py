"""Trees of images, a folder for each class."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from edgefl.core.errors import DataError
from edgefl.core.images import SUFFIXES
from edgefl.data.spec import Ints

# Files that systems leave beside images; those whose names begin with a dot are always skipped.
_SYSTEMS = frozenset({"thumbs.db", "desktop.ini"})


@dataclass(frozen=True)
class Listing:
    """The images below the class folders of one folder.

    Attributes:
        folder: what holds the class folders.
        files: class by class, sorted by path within each.
        labels: (N,) int64, the class of each file.
    """

    folder: Path
    files: tuple[Path, ...]
    labels: Ints


def class_folders(folder: Path) -> list[str]:
    """The names of the folders in a folder: in the order of numbers if all are, else alphabetically.

    Raises:
        DataError: the folder cannot be read, or a name is not Unicode text.
    """
    names = sorted(entry.name for entry in _entries(folder) if _kind(entry) == "folder")
    for name in names:
        if not _is_text(name):
            raise DataError(
                f"the name of the class folder {os.fsencode(name)!r} is not valid UTF-8",
                where=str(folder).encode("utf-8", "replace").decode(),
                hint="rename it: it is the class's name",
            )
    return sorted(names, key=lambda name: (int(name), name)) if all(map(str.isdecimal, names)) else names


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def listed(folder: Path, classes: Sequence[str]) -> Listing:
    """The images of each class.

    Raises:
        DataError: a class has none, a file is no image by its name, or links form a loop.
    """
    files: list[Path] = []
    counts = []
    for name in classes:
        found = sorted(_images(folder / name, set()))
        if not found:
            raise DataError(
                f"the class folder {name!r} has no images",
                where=str(folder / name),
                hint="remove the folder, or put images in it",
            )
        files += found
        counts.append(len(found))
    return Listing(folder, tuple(files), np.repeat(np.arange(len(classes)), counts).astype(np.int64))


def _images(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Path]:
    """The image files in a folder and below it; ``seen`` are the folders of the class so far."""
    entries = _entries(folder)
    state = folder.stat()
    if (state.st_dev, state.st_ino) in seen:
        raise DataError("a link leads to a folder that was already read", where=str(folder), hint="remove it")
    seen.add((state.st_dev, state.st_ino))
    for entry in entries:
        path, kind = Path(entry.path), _kind(entry)
        if kind == "folder":
            yield from _images(path, seen)
        elif kind == "file" and path.suffix.lower() in SUFFIXES:
            yield path
        else:
            raise DataError(
                "this is not an image file" if kind == "file" else "this is not a file, or a link to nothing",
                where=str(path),
                hint=f"remove it, or begin its name with a dot; images end in {', '.join(sorted(SUFFIXES))}",
            )


def _kind(entry: os.DirEntry[str]) -> Literal["folder", "file", "other"]:
    """What an entry is, or what it links to; "other" for a link to nothing or to itself."""
    try:
        return "folder" if entry.is_dir() else "file" if entry.is_file() else "other"
    except OSError:
        return "other"


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What a folder holds, without hidden files and those that systems leave.

    Raises:
        DataError: it cannot be read.
    """
    try:
        with os.scandir(folder) as found:
            return [
                entry
                for entry in found
                if not entry.name.startswith(".") and entry.name.lower() not in _SYSTEMS
            ]
    except OSError as error:
        raise DataError(f"cannot read the folder: {error.strerror or error}", where=str(folder)) from error
