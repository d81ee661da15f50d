"""A folder of images, with a folder for each class.

``path`` holds ``train/CLASS/`` and ``test/CLASS/``, or ``CLASS/`` alone, of which a share is kept for
testing. Classes are in the order of numbers if all their names are, else in alphabetical order. Images may be
in folders below a class folder. Hidden files are skipped.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from edgefl.core.errors import DataError
from edgefl.data.dataset import Source
from edgefl.data.images import SUFFIXES, OwnImages, Pictures, explained, of_files

_PARTS = {"train", "test"}
# What else stands beside train/ or test/, and is no class.
_OTHERS = {"val", "valid", "validation", "dev", "unlabeled"}
# Files that systems leave beside images; those whose names begin with a dot are always skipped.
_SYSTEMS = frozenset({"thumbs.db", "desktop.ini"})


class Params(OwnImages):
    def build(self) -> Source:
        """Raises a ``DataError`` where the folder is not there, or is not a tree of images."""
        root = self.root()
        classes, test = _classes(root), None
        if set(classes) & _PARTS and set(classes) <= _PARTS | _OTHERS:
            if missing := _PARTS - set(classes):
                raise DataError(f"there is no {missing.pop()}/", where=str(root))
            classes = _classes(root / "train")
            if differing := set(classes) ^ set(_classes(root / "test")):
                raise DataError(f"class {min(differing)!r} is not in both train/ and test/", where=str(root))
            test, root = tree(root / "test", classes), root / "train"
        if not classes:
            raise DataError(
                "there are no class folders",
                where=str(root),
                hint="it needs train/CLASS/ and test/CLASS/, or CLASS/ with images in each",
            )
        return self.source(tuple(classes), tree(root, classes), test)


def _classes(folder: Path) -> list[str]:
    names = sorted(path.name for path in _entries(folder) if path.is_dir())
    for name in names:
        if os.fsencode(name).decode(errors="replace") != name:
            what = f"the name of the class folder {os.fsencode(name)!r} is not valid UTF-8"
            raise DataError(what, where=str(folder), hint="rename it: it is the class's name")
    return sorted(names, key=lambda name: (int(name), name)) if all(map(str.isdecimal, names)) else names


def tree(folder: Path, classes: Sequence[str]) -> Pictures:
    """The images in folders of classes, class by class, sorted by path within each."""
    each = [sorted(_images(folder / name)) for name in classes]
    counts = list(map(len, each))
    if 0 in counts:
        empty = classes[counts.index(0)]
        what, hint = f"the class folder {empty!r} has no images", "remove the folder, or put images in it"
        raise DataError(what, where=str(folder / empty), hint=hint)
    return of_files(list(chain.from_iterable(each)), np.repeat(np.arange(len(classes)), counts))


def _images(folder: Path) -> Iterator[Path]:
    """The image files in a folder and below it; links to folders are not followed, as they may loop."""
    for path in _entries(folder):
        if path.is_dir() and not path.is_symlink():
            yield from _images(path)
        elif path.suffix.lower() in SUFFIXES:
            yield path
        else:
            raise DataError(
                "this is not an image file",
                where=str(path),
                hint=f"remove it, or begin its name with a dot; images end in {', '.join(sorted(SUFFIXES))}",
            )


def _entries(folder: Path) -> list[Path]:
    """What a folder holds, without hidden files and those that systems leave."""
    with explained("cannot read the folder", str(folder)):
        return [one for one in folder.iterdir() if one.name[0] != "." and one.name.lower() not in _SYSTEMS]
