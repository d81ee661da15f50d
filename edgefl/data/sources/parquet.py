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
from edgefl.data.dataset import Source
from edgefl.data.own_images import OwnImages
from edgefl.data.pictures import Pictures, image_parquet, parquet_files

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
        parts = [image_parquet(part, self.label, self.user) for part in _files(self.found()) if part]
        return self.source(self._names(parts), *parts)

    def _names(self, parts: list[Pictures]) -> tuple[str, ...]:
        """The classes' names: those of the metadata, or their numbers.

        Raises:
            DataError: labels are not numbers from 0, or do not fit the names.
        """
        names, labels = parts[0].names, np.concatenate([part.labels for part in parts])
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
        train, test = parquet_files(place)
        if test and not train:
            raise DataError("there is test*.parquet but no train*.parquet", where=str(place))
        # Without a test part, only files of training images; all files where none is named so.
        if every := train or sorted(place.glob("*.parquet")):
            return every, test
    raise DataError(
        "there are no Parquet files",
        where=str(root),
        hint="it needs train*.parquet and test*.parquet, or *.parquet, there or in its folder 'data'",
    )
