"""What datasets of a user's own images share: their parameters, their split and their description."""

from __future__ import annotations

import hashlib
import json
import os
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field

from edgefl.core.errors import DataError
from edgefl.core.notes import note
from edgefl.core.units import show_count
from edgefl.data.dataset import Arrays, Source, Spec, stratified
from edgefl.data.images import header
from edgefl.data.pictures import Pictures, decoded_pictures
from edgefl.data.sources import Dataset

# Of so many images, the sizes are looked up where none is given.
LOOKED_AT = 256
# Independent of a run's seed: every run has the same test images. Any number would do.
_SPLIT_SEED = 2718
_TEST_SHARE = 0.2

_Side = Annotated[int, Field(strict=True, gt=0, le=1024)]


def _absolute(text: str) -> str:
    if "\0" in text:
        raise ValueError("'path' must name a folder")
    return str(Path(os.path.expanduser(text)).absolute())  # noqa: PTH111 - a Path fails without such a user


class OwnImages(Dataset):
    """Where the images are, and what they are turned into."""

    path: Annotated[
        str,
        Field(min_length=1, description="the folder; relative paths begin at the current directory"),
        AfterValidator(_absolute),
    ]
    size: Annotated[
        _Side | tuple[_Side, _Side] | None,
        Field(description="height and width to resize to, or one number; null: their own, 32 if they differ"),
    ] = None
    channels: Annotated[Literal[1, 3], Field(description="1 for grey, 3 for colour")] = 3

    def source(self, names: tuple[str, ...], train: Pictures, test: Pictures | None = None) -> Source:
        """The dataset, named after its folder.

        Args:
            names: of the classes.
            train: its images.
            test: those to test on; None for a share of each class's, the same ones for every seed.

        Raises:
            DataError: an image cannot be read, or a class has too few.
        """
        if len(names) < 2:  # noqa: PLR2004 - the least that can be told apart
            raise DataError(f"there is only the class {names[0]!r}; at least 2 are needed", where=self.path)
        counts = np.bincount(train.labels, minlength=len(names))
        few = (
            f"class {names[int(counts.argmin())]!r} has {show_count(int(counts.min()), 'image')} to train on"
        )
        if counts.min() < (2 if test is None else 1):
            raise DataError(f"{few}; at least 2 are needed, one of them for testing", where=self.path)
        name = Path(self.path).name or "images"
        shape = self.channels, *self._size([train] if test is None else [train, test], name)
        if test is None:
            rng = np.random.default_rng(_SPLIT_SEED)
            kept, held = stratified(train.labels, _TEST_SHARE, rng, least=1)
            train, test = train.of(kept), train.of(held)
        if not len(test.labels):
            raise DataError("there are no test images", where=self.path)
        known = [names, train.labels.tolist(), test.labels.tolist()]
        spec = Spec(
            name=name,
            shape=shape,
            classes=len(names),
            train_size=len(train.labels),
            test_size=len(test.labels),
            class_names=names,
            content=hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32],
        )
        users = None
        if train.users is not None and test.users is not None:
            # Numbered in the order of their names.
            _, numbers = np.unique(np.concatenate((train.users, test.users)), return_inverse=True)
            users = numbers[: len(train.users)], numbers[len(train.users) :]

        def load(folder: Path | None, *, download: bool) -> Arrays:  # noqa: ARG001 - the folder is a parameter
            return decoded_pictures(train, test, shape, fit=True)

        return Source(spec, load, self.path, labels=(train.labels, test.labels), users=users)

    def _size(self, parts: list[Pictures], name: str) -> tuple[int, int]:
        """The height and width that images are resized to: where none is given, that of some of them.

        Raises:
            DataError: one of them cannot be read.
        """
        if self.size is not None:
            return (self.size, self.size) if isinstance(self.size, int) else self.size
        some = chain.from_iterable(part.some(LOOKED_AT) for part in parts)
        size, *others = {header(image, where)[1:] for where, image in some}
        if others:
            size = 32, 32
            note(f"{name}: sizes differ, so images become 32 x 32; for others, set task.dataset.size")
        return size

    def found(self) -> Path:
        """The folder.

        Raises:
            DataError: there is none.
        """
        folder = Path(self.path)
        if not os.path.isdir(folder):  # noqa: PTH112 - a Path fails on a name that is too long
            raise DataError(
                f"there is no folder {folder.name!r}",
                where=self.path,
                hint="task.dataset.path must name a folder; relative paths begin at the current directory",
            )
        return folder
