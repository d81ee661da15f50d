"""Images in Parquet files, as Hugging Face datasets are published.

``path`` holds ``train*.parquet`` and ``test*.parquet``, there or in its folder ``data``, or other Parquet
files, of whose images a share is kept for testing. Labels are whole numbers from 0; classes have the names in
Hugging Face's metadata, or their numbers. Needs pyarrow: pip install 'edgefl-emulator[parquet]'.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from edgefl.core.errors import DataError
from edgefl.data.own_images import OwnImages
from edgefl.data.pictures import ImageParquet
from edgefl.data.source import Source
from edgefl.data.spec import Ints

# Far above any labelled image dataset's; a label beyond it is no class number.
_MOST_CLASSES = 100_000


class Params(OwnImages):
    """Where the files are, and what their images are turned into."""

    label: Annotated[
        str | None, Field(description="the column of labels; null for label, fine_label or labels")
    ] = None
    user: Annotated[
        str | None, Field(description="the column that says whose an image is, for by-user; null for none")
    ] = None

    def build(self) -> Source:
        """The dataset in a folder's Parquet files.

        Raises:
            DataError: the files are not there, or are not image Parquet.
        """
        train, test = _files(self.found())
        files = [ImageParquet(part, self.label) for part in (train, test) if part]
        parts = [part.pictures() for part in files]
        names = self._names(files[0].class_names(), np.concatenate([part.labels for part in parts]))
        owners = None
        if self.user is not None:
            users = [user for part in files for user in part.users(self.user)]
            # Numbered in the order of their names.
            owners = np.unique(users, return_inverse=True)[1].astype(np.int64)
        return self.source(names, parts[0], parts[1] if test else None, owners)

    def _names(self, names: tuple[str, ...], labels: Ints) -> tuple[str, ...]:
        """The classes' names: those of the metadata, or their numbers.

        Raises:
            DataError: labels are not numbers from 0, or do not fit the names.
        """
        if not len(labels):
            raise DataError("the files hold no images", where=self.path)
        least, most = int(labels.min()), int(labels.max())
        classes = len(names) or most + 1
        if least < 0 or most >= classes or classes > _MOST_CLASSES:
            what = f"labels run from {least} to {most}; they must be numbers of classes, from 0"
            raise DataError(what + (f" to {classes - 1}" if names else ""), where=self.path)
        if len(set(names)) < len(names):
            raise DataError("two classes have the same name", where=self.path)
        return names or tuple(map(str, range(classes)))


def _files(root: Path) -> tuple[list[Path], list[Path]]:
    """Training and test files; none of the latter where a share of the images is for testing."""
    for place in (root, root / "data"):
        train, test, every = (sorted(place.glob(f"{one}.parquet")) for one in ("train*", "test*", "*"))
        if test and not train:
            raise DataError("there is test*.parquet but no train*.parquet", where=str(place))
        if every:
            # Without a test part, only files of training images; all files where none is named so.
            return train or every, test
    raise DataError(
        "there are no Parquet files",
        where=str(root),
        hint="it needs train*.parquet and test*.parquet, or *.parquet, there or in its folder 'data'",
    )
