"""Images in Parquet files, as Hugging Face datasets are published.

``path`` holds ``train*.parquet`` and ``test*.parquet``, there or in its folder ``data``, or other Parquet
files, of whose images a share is kept for testing. Labels are whole numbers from 0; classes have the names in
Hugging Face's metadata, or their numbers. Needs pyarrow: pip install 'edgefl-emulator[parquet]'.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from edgefl.core.errors import DataError
from edgefl.core.images import Form
from edgefl.data import image_parquet
from edgefl.data.image_cache import Decoded, decoded_once
from edgefl.data.own_images import LOOKED_AT, OwnImages, check_divisible, check_found
from edgefl.data.source import Labels, Source
from edgefl.data.spec import Arrays, Ints

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
        files = _files(check_found(self.path))
        train_y = image_parquet.labels_of(files.train, self.label)
        if files.test:
            self.check_parts("test*.parquet")
            labels = train_y, image_parquet.labels_of(files.test, self.label)
        else:
            labels = train_y, train_y[:0]
        names = _names(self, files, labels)
        parts = None
        if not files.test:
            check_divisible(names, train_y, self.path)
            parts = self.parts(train_y)
            labels = train_y[parts[0]], train_y[parts[1]]
        form = self.form(image_parquet.first_images(files.train, self.label, LOOKED_AT))
        spec = self.spec(form, names, labels)
        users: Labels | None = None
        if self.user is not None:
            owners = image_parquet.users_of([*files.train, *files.test], self.user)
            count = len(owners) - len(labels[1]) if files.test else 0
            users = (
                (owners[:count], owners[count:]) if parts is None else (owners[parts[0]], owners[parts[1]])
            )

        def load(folder: Path | None, *, download: bool) -> Decoded:  # noqa: ARG001 - the folder is a parameter
            how = {
                "layout": "own parquet",
                "files": [len(files.train), len(files.test)],
                "label": self.label,
                "test_share": self.test_share,
                "form": form.facts(),
            }
            return decoded_once([*files.train, *files.test], how, lambda: _decoded(self, files, parts, form))

        return Source(spec, load, self.path, labels=labels, users=users)


@dataclass(frozen=True)
class _Files:
    """The dataset's files: ``test`` is empty where a share of the images of ``train`` is for testing."""

    train: list[Path]
    test: list[Path]


def _files(root: Path) -> _Files:
    for place in (root, root / "data"):
        train, test, every = (
            sorted(place.glob(f"{pattern}.parquet")) for pattern in ("train*", "test*", "*")
        )
        if train and test:
            return _Files(train, test)
        if test:
            raise DataError("there is test*.parquet but no train*.parquet", where=str(place))
        if every:
            # Without a test part, only files of training images; all files where none is named so.
            return _Files(train or every, [])
    raise DataError(
        "there are no Parquet files",
        where=str(root),
        hint="it needs train*.parquet and test*.parquet, or *.parquet, there or in its folder 'data'",
    )


def _names(params: Params, files: _Files, labels: Labels) -> tuple[str, ...]:
    """The classes' names: those of the metadata, or their numbers.

    Raises:
        DataError: labels are not numbers from 0, or do not fit the names.
    """
    both: Ints = np.concatenate(labels)
    if not len(labels[0]):
        raise DataError("the files hold no images", where=params.path)
    least, most = int(both.min()), int(both.max())
    names = image_parquet.class_names(files.train[0], params.label)
    classes = len(names) or most + 1
    if least < 0 or most >= classes or classes > _MOST_CLASSES:
        raise DataError(
            f"labels run from {least} to {most}; they must be numbers of classes, from 0"
            + (f" to {classes - 1}" if names else ""),
            where=params.path,
        )
    if len(set(names)) < len(names):
        raise DataError("two classes have the same name", where=str(files.train[0]))
    return names or tuple(map(str, range(classes)))


def _decoded(params: Params, files: _Files, parts: tuple[Ints, Ints] | None, form: Form) -> Arrays:
    train_y = image_parquet.labels_of(files.train, params.label)
    train_x = image_parquet.images_of(files.train, len(train_y), form, params.label)
    if parts is None:
        test_y = image_parquet.labels_of(files.test, params.label)
        return Arrays(
            train_x, train_y, image_parquet.images_of(files.test, len(test_y), form, params.label), test_y
        )
    train, test = parts
    return Arrays(train_x[train], train_y[train], train_x[test], train_y[test])
