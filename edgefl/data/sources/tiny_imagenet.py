"""Tiny ImageNet: 200 of ImageNet's classes, 64 x 64 (Stanford's course CS231n, 2015).

Its test images have no published labels, so its validation images are the test set, as is usual.
"""

from pathlib import Path

import numpy as np

from edgefl.core.errors import DataError
from edgefl.data.dataset import Arrays, Source, Spec
from edgefl.data.images import decoded_pictures, explained, of_files
from edgefl.data.readers import unpacked
from edgefl.data.sources import Dataset
from edgefl.data.sources.folder import tree

_CLASSES = 200
_RECIPE = "unpack there, from http://cs231n.stanford.edu/tiny-imagenet-200.zip, wnids.txt, train/ and val/"
_NAMES = tuple(f"class {number}" for number in range(_CLASSES))
SPEC = Spec("tiny-imagenet", (3, 64, 64), 100_000, 10_000, _NAMES)


class Params(Dataset):
    def build(self) -> Source:
        """The images in the layout of the published archive; classes in the order of their WordNet ids."""
        return unpacked(
            SPEC,
            _read,
            below=("tiny_imagenet", "tiny-imagenet", "tiny-imagenet-200"),
            parts=("wnids.txt", "train", "val"),
            recipe=_RECIPE,
        )


def _read(root: Path) -> Arrays:
    ids = sorted((root / "wnids.txt").read_text(encoding="utf-8").split())
    if len(ids) != _CLASSES:
        raise DataError(f"{len(ids)} classes, not {_CLASSES}", where=str(root / "wnids.txt"))
    table = root / "val" / "val_annotations.txt"
    with explained("cannot read the test images' classes", str(table)):
        rows = [line.split("\t")[:2] for line in table.read_text(encoding="utf-8").splitlines()]
        labels = np.array([ids.index(name) for _, name in rows], dtype=np.int64)
    train = tree(root / "train", [f"{name}/images" for name in ids])
    test = of_files([root / "val" / "images" / name for name, _ in rows], labels)
    return decoded_pictures(train, test, SPEC.shape, fit=False)
