"""A folder of images, with a folder for each class.

``path`` holds ``train/CLASS/`` and ``test/CLASS/``, or ``CLASS/`` alone, of which a share is kept for
testing. Classes are in the order of numbers if all their names are, else in alphabetical order. Images may be
in folders below a class folder. Hidden files are skipped.
"""

from __future__ import annotations

from edgefl.core.errors import DataError
from edgefl.data.dataset import Source
from edgefl.data.own_images import OwnImages
from edgefl.data.pictures import class_folders, tree

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
        root = self.found()
        classes, test = class_folders(root), None
        if set(classes) & _PARTS and set(classes) <= _PARTS | _OTHERS:
            if missing := _PARTS - set(classes):
                raise DataError(f"there is no {missing.pop()}/", where=str(root))
            classes = class_folders(root / "train")
            if differing := set(classes) ^ set(class_folders(root / "test")):
                raise DataError(f"class {min(differing)!r} is not in both train/ and test/", where=str(root))
            test, root = tree(root / "test", classes), root / "train"
        if not classes:
            raise DataError(
                "there are no class folders",
                where=str(root),
                hint="it needs train/CLASS/ and test/CLASS/, or CLASS/ with images in each",
            )
        return self.source(tuple(classes), tree(root, classes), test)
