"""Labelled images that are not decoded yet: a folder of class folders, or Hugging Face's image Parquet."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.core.errors import DataError
from edgefl.core.extras import needs
from edgefl.data.image_cache import decoded_once
from edgefl.data.images import SUFFIXES, Encoded, decoded, explained
from edgefl.data.spec import Arrays, Ints

LABELS = ("label", "fine_label", "labels")
"""Names of label columns, in the order in which they are looked for."""
# Files that systems leave beside images; those whose names begin with a dot are always skipped.
_SYSTEMS = frozenset({"thumbs.db", "desktop.ini"})
# Images read at a time.
_BATCH = 1000


@dataclass(frozen=True)
class Pictures:
    """Labelled images.

    Attributes:
        files: that they are in.
        labels: (N,) int64.
        encoded: them, in the order of labels.
    """

    files: Sequence[Path]
    labels: Ints
    encoded: Callable[[], Iterable[Encoded]]

    def of(self, chosen: Ints) -> Pictures:
        """Some of them, by sorted indices."""
        mask = np.isin(np.arange(len(self.labels)), chosen)
        return Pictures(self.files, self.labels[chosen], lambda: compress(self.encoded(), mask))

    def some(self, most: int) -> Iterator[Encoded]:
        """At most so many, of all classes; where files hold several, the first, as all before are read."""
        step = -(-len(self.labels) // most) if len(self.files) == len(self.labels) else 1
        return islice(self.encoded(), 0, most * step, max(1, step))


def decoded_pictures(train: Pictures, test: Pictures, shape: tuple[int, int, int], *, fit: bool) -> Arrays:
    """Both parts in one shape, from the cache if they were decoded before; see ``edgefl.data.images``.

    Raises:
        DataError: an image cannot be read or does not fit.
    """

    def decode() -> Arrays:
        train_x, test_x = (
            decoded(part.encoded(), len(part.labels), shape, fit=fit) for part in (train, test)
        )
        return Arrays(train_x, train.labels, test_x, test.labels)

    labels = [hashlib.sha256(part.labels.tobytes()).hexdigest() for part in (train, test)]
    how = {"shape": shape, "fit": fit, "labels": labels}
    return decoded_once(list(dict.fromkeys([*train.files, *test.files])), how, decode)


# --- folders


def class_folders(folder: Path) -> list[str]:
    """The names of the folders in a folder: in the order of numbers if all are, else alphabetically.

    Raises:
        DataError: the folder cannot be read, or a name is not Unicode text.
    """
    names = sorted(path.name for path in _entries(folder) if path.is_dir())
    for name in names:
        if os.fsencode(name).decode(errors="replace") != name:
            what = f"the name of the class folder {os.fsencode(name)!r} is not valid UTF-8"
            raise DataError(what, where=str(folder), hint="rename it: it is the class's name")
    return sorted(names, key=lambda name: (int(name), name)) if all(map(str.isdecimal, names)) else names


def tree(folder: Path, classes: Sequence[str]) -> Pictures:
    """The images in folders of classes, class by class, sorted by path within each.

    Raises:
        DataError: a class has none, or a file is no image by its name.
    """
    files: list[Path] = []
    counts = []
    for name in classes:
        found = sorted(_images(folder / name))
        if not found:
            raise DataError(
                f"the class folder {name!r} has no images",
                where=str(folder / name),
                hint="remove the folder, or put images in it",
            )
        files += found
        counts.append(len(found))
    return of_files(files, np.repeat(np.arange(len(classes)), counts))


def of_files(files: Sequence[Path], labels: Ints) -> Pictures:
    """Images of which each has a file."""
    return Pictures(files, labels, lambda: ((str(path), path) for path in files))


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
    """What a folder holds, without hidden files and those that systems leave.

    Raises:
        DataError: it cannot be read.
    """
    with explained("cannot read the folder", str(folder)):
        return [one for one in folder.iterdir() if one.name[0] != "." and one.name.lower() not in _SYSTEMS]


# --- Hugging Face image Parquet


class ImageParquet:
    """Parquet files with a column of encoded images and one of labels, as the first file names them."""

    def __init__(self, files: Sequence[Path], label: str | None = None) -> None:
        """Takes the files in the order of images, and the column of labels, None for the first of ``LABELS``.

        Raises:
            DataError: pyarrow is missing, or the first file is not image Parquet.
        """
        needs("pyarrow", "Parquet files need", "parquet", str(files[0]))
        from pyarrow import types

        def encoded(kind: Any) -> bool:
            inner = {field.name: field.type for field in kind} if types.is_struct(kind) else {}
            return "bytes" in inner and (
                types.is_binary(inner["bytes"]) or types.is_large_binary(inner["bytes"])
            )

        self._files = files
        with _opened(files[0]) as file:
            self._schema = schema = file.schema_arrow
        images = [field.name for field in schema if encoded(field.type)]
        known = LABELS if label is None else (label,)
        labels = [
            name for name in known if name in schema.names and types.is_integer(schema.field(name).type)
        ]
        if len(images) != 1 or not labels:
            raise DataError(
                f"{files[0].name} is not image Parquet; its columns are {', '.join(schema.names)}",
                where=str(files[0]),
                hint="it needs a column of struct<bytes, path> and an integer column " + " or ".join(known),
            )
        self._image, self._label = images[0], labels[0]

    def pictures(self) -> Pictures:
        """The images.

        Raises:
            DataError: one has no label.
        """
        labels = self._column(self._label)
        if missing := labels.null_count:
            what = f"{missing:,} of {len(labels):,} images have no label"
            raise DataError(what, where=str(self._files[0].parent))
        return Pictures(self._files, labels.to_numpy().astype(np.int64), self._encoded)

    def users(self, column: str) -> list[str]:
        """Whose each image is, as text.

        Raises:
            DataError: there is no such column, or it has other values.
        """
        users = self._column(column).to_pylist()
        if odd := sum(not isinstance(one, str | int) for one in users):
            raise DataError(
                f"in {odd:,} of {len(users):,} rows, {column!r} has neither a name nor a whole number",
                where=str(self._files[0].parent),
                hint="every image needs a user; remove the others, or name another column",
            )
        return list(map(str, users))

    def class_names(self) -> tuple[str, ...]:
        """The classes' names as Hugging Face's metadata has them; empty if there are none."""
        with suppress(KeyError, TypeError, ValueError):
            features = json.loads(self._schema.metadata[b"huggingface"])["info"]["features"]
            return tuple(map(str, features[self._label]["names"]))
        return ()

    def _column(self, name: str) -> Any:
        """A column's values in all files."""
        from pyarrow import parquet

        with explained(f"cannot read the column {name!r}", str(self._files[0].parent)):
            return parquet.read_table(self._files, columns=[name])[name]

    def _encoded(self) -> Iterator[Encoded]:
        for path in self._files:
            with _opened(path) as file:
                batches = file.iter_batches(_BATCH, columns=[self._image])
                blobs = (blob for batch in batches for blob in batch.column(0).field("bytes").to_pylist())
                for place, blob in enumerate(blobs):
                    name = f"{path}, image {place}"
                    if blob is None:
                        what, hint = "only a path is stored", "save the dataset with its images embedded"
                        raise DataError(f"an image has no content: {what}", where=name, hint=hint)
                    yield name, blob


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    from pyarrow import parquet

    with explained(f"{path.name} is unreadable", str(path)), parquet.ParquetFile(path) as file:
        yield file
