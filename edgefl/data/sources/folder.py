"""A folder of images, with a folder for each class.

``path`` holds ``train/CLASS/`` and ``test/CLASS/``, or ``CLASS/`` alone, of which a share is kept for
testing. Classes are in the order of numbers if all their names are, else in alphabetical order. Images may be
in folders below a class folder. Hidden files are skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edgefl.core.errors import DataError
from edgefl.core.images import files_decoded
from edgefl.data.image_cache import Decoded, decoded_once
from edgefl.data.image_folders import Listing, class_folders, listed
from edgefl.data.own_images import LOOKED_AT, OwnImages, check_divisible, check_found
from edgefl.data.source import Source
from edgefl.data.spec import Arrays, Ints

_PARTS = {"train", "test"}
# What else stands beside train/ or test/, and is no class.
_OTHERS = {"val", "valid", "validation", "dev", "unlabeled"}


class Params(OwnImages):
    """Where the images are, and what they are turned into."""

    def build(self) -> Source:
        """The dataset in a folder.

        Raises:
            DataError: the folder is not there, or is not a tree of images.
        """
        root = check_found(self.path)
        names = class_folders(root)
        if set(names) & _PARTS and set(names) <= _PARTS | _OTHERS:
            return _given(self, root, names)
        return _shared(self, root, tuple(names))


def _given(params: Params, root: Path, names: Sequence[str]) -> Source:
    """The dataset of a folder with train/ and test/."""
    missing = sorted(_PARTS - set(names))
    if missing:
        (there,) = _PARTS - set(missing)
        raise DataError(
            f"there is {there}/ but no {missing[0]}/",
            where=str(root),
            hint=f"add {missing[0]}/, or set task.dataset.path to {root / there} to split its images",
        )
    params.check_parts("train/ and test/")
    classes = tuple(class_folders(root / "train"))
    differing = set(classes) ^ set(class_folders(root / "test"))
    if differing:
        raise DataError(f"class {min(differing)!r} is not in both train/ and test/", where=str(root))
    if not classes:
        raise _no_classes(root / "train")
    train, test = (listed(root / part, classes) for part in ("train", "test"))
    return _source(params, classes, (train, test), ((train.files, train.labels), (test.files, test.labels)))


def _shared(params: Params, root: Path, classes: tuple[str, ...]) -> Source:
    """The dataset of a folder of class folders, a share of whose images are for testing."""
    if not classes:
        raise _no_classes(root)
    found = listed(root, classes)
    check_divisible(classes, found.labels, params.path)
    train, test = params.parts(found.labels)
    return _source(params, classes, (found,), (_chosen(found, train), _chosen(found, test)))


def _no_classes(folder: Path) -> DataError:
    return DataError(
        "there are no class folders",
        where=str(folder),
        hint="it needs train/CLASS/ and test/CLASS/, or CLASS/ with images in each",
    )


_Part = tuple[Sequence[Path], Ints]


def _chosen(found: Listing, indices: Ints) -> _Part:
    return [found.files[index] for index in indices], found.labels[indices]


def _source(
    params: Params, classes: tuple[str, ...], listings: Sequence[Listing], parts: tuple[_Part, _Part]
) -> Source:
    (train_files, train_y), (test_files, test_y) = parts
    files = [*train_files, *test_files]
    form = params.form((str(file), file) for file in files[:: -(-len(files) // LOOKED_AT)])
    spec = params.spec(form, classes, (train_y, test_y))

    def decode() -> Arrays:
        train_x, test_x = (files_decoded(files, form) for files in (train_files, test_files))
        return Arrays(train_x, train_y, test_x, test_y)

    def load(folder: Path | None, *, download: bool) -> Decoded:  # noqa: ARG001 - the folder is a parameter
        counts = [np.bincount(listing.labels, minlength=len(classes)).tolist() for listing in listings]
        # The test part of a split without one follows from the counts and the share.
        how = {"layout": "folder", "counts": counts, "test_share": params.test_share, "form": form.facts()}
        return decoded_once(files, how, decode)

    return Source(spec, load, params.path, labels=(train_y, test_y))
