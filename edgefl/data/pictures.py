"""Labelled images that are not decoded yet: a folder of class folders, or Hugging Face's image Parquet."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.core.errors import DataError
from edgefl.core.extras import needs
from edgefl.core.images import SUFFIXES, Encoded, Form, decoded, explained
from edgefl.data.image_cache import Decoded, decoded_once
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
        mask = np.zeros(len(self.labels), dtype=bool)
        mask[chosen] = True
        files = list(compress(self.files, mask)) if self._have_files else self.files
        return Pictures(files, self.labels[chosen], lambda: compress(self.encoded(), mask))

    def some(self, most: int) -> Iterator[Encoded]:
        """At most so many, of all classes; where files hold several, the first, as all before are read."""
        step = -(-len(self.labels) // most) if self._have_files else 1
        return islice(self.encoded(), 0, most * step, max(1, step))

    @property
    def _have_files(self) -> bool:
        return len(self.files) == len(self.labels)


def decoded_pictures(train: Pictures, test: Pictures, form: Form) -> Decoded:
    """Both parts in one form, from the cache if they were decoded before.

    Raises:
        DataError: an image cannot be read or does not fit.
    """

    def decode() -> Arrays:
        train_x, test_x = (decoded(part.encoded(), len(part.labels), form) for part in (train, test))
        return Arrays(train_x, train.labels, test_x, test.labels)

    labels = [hashlib.sha256(part.labels.tobytes()).hexdigest() for part in (train, test)]
    how = {"shape": form.shape, "fitted": form.fitted, "resized": form.resized, "labels": labels}
    return decoded_once([*train.files, *test.files], how, decode)


# --- folders


def class_folders(folder: Path) -> list[str]:
    """The names of the folders in a folder: in the order of numbers if all are, else alphabetically.

    Raises:
        DataError: the folder cannot be read, or a name is not Unicode text.
    """
    names = sorted(path.name for path in _entries(folder) if path.is_dir())
    for name in names:
        if any("\ud800" <= letter <= "\udfff" for letter in name):
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
        found = sorted(_images(folder / name, set()))
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


def _images(folder: Path, seen: set[Path]) -> Iterator[Path]:
    """The image files in a folder and below it; ``seen`` are the folders of the class so far."""
    with explained("cannot read the folder", str(folder)):
        real = folder.resolve()
    if real in seen:
        raise DataError("a link leads to a folder that was already read", where=str(folder), hint="remove it")
    seen.add(real)
    for path in _entries(folder):
        if path.is_dir():
            yield from _images(path, seen)
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


def parquet(files: Sequence[Path], column: str | None = None) -> Pictures:
    """The images of Parquet files: a column of encoded images and one of labels.

    Args:
        files: in the order of images.
        column: of the labels; None for the first of ``LABELS`` that is there.

    Raises:
        DataError: pyarrow is missing, or a file is not image Parquet.
    """
    columns = [_columns(path, column) for path in files]
    labels = []
    for path, (_, label) in zip(files, columns, strict=True):
        values = _column(path, label)
        if values.null_count:
            what = f"{path.name} has images without a label: {values.null_count} of {len(values)}"
            raise DataError(what, where=str(path))
        labels.append(values.to_numpy().astype(np.int64))
    images = [image for image, _ in columns]
    return Pictures(files, np.concatenate(labels), lambda: _encoded(files, images))


def users_of(files: Sequence[Path], column: str) -> Ints:
    """Whose each image of Parquet files is, (N,) int64, numbered in the order of the column's values as text.

    Raises:
        DataError: a file has no such column.
    """
    found: list[Any] = []
    for path in files:
        users = _column(path, column).to_pylist()
        if odd := sum(not isinstance(one, str | int) for one in users):
            raise DataError(
                f"in {odd:,} of {len(users):,} rows, {column!r} has neither a name nor a whole number",
                where=str(path),
                hint="every image needs a user; remove the others, or name another column",
            )
        found += map(str, users)
    return np.unique(np.array(found), return_inverse=True)[1].astype(np.int64)


def class_names(path: Path, column: str | None = None) -> tuple[str, ...]:
    """The classes' names as Hugging Face's metadata in a Parquet file has them; empty if there are none."""
    _, label = _columns(path, column)
    with suppress(KeyError, TypeError, ValueError), _opened(path) as file:
        features = json.loads(file.schema_arrow.metadata[b"huggingface"])["info"]["features"]
        return tuple(map(str, features[label]["names"]))
    return ()


def _opened(path: Path) -> Any:
    needs("pyarrow", "Parquet files need", "parquet", str(path))
    from pyarrow import parquet

    with explained(f"{path.name} is unreadable", str(path)):
        return parquet.ParquetFile(path)


def _column(path: Path, name: str) -> Any:
    with _opened(path) as file:
        names = file.schema_arrow.names
        if name not in names:
            what = f"{path.name} has no column {name!r}; its columns are {', '.join(names)}"
            raise DataError(what, where=str(path))
        with explained(f"{path.name} is unreadable", str(path)):
            return file.read(columns=[name])[name]


def _encoded(files: Sequence[Path], images: Sequence[str]) -> Iterator[Encoded]:
    for path, image in zip(files, images, strict=True):
        with _opened(path) as file, explained(f"{path.name} is unreadable", str(path)):
            batches = file.iter_batches(_BATCH, columns=[image])
            blobs = (blob for batch in batches for blob in batch.column(0).field("bytes").to_pylist())
            for place, blob in enumerate(blobs):
                name = f"{path}, image {place}"
                if blob is None:
                    hint = "save the dataset with its images embedded"
                    raise DataError("an image has no content: only a path is stored", where=name, hint=hint)
                yield name, blob


def _columns(path: Path, column: str | None) -> tuple[str, str]:
    """The names of the image column, recognised by its type, and of the label column."""
    with _opened(path) as file:
        schema = file.schema_arrow
    from pyarrow import types

    images = [
        field.name
        for field in schema
        if types.is_struct(field.type)
        and any(
            inner.name == "bytes" and (types.is_binary(inner.type) or types.is_large_binary(inner.type))
            for inner in field.type
        )
    ]
    candidates = LABELS if column is None else (column,)
    labels = [
        name for name in candidates if name in schema.names and types.is_integer(schema.field(name).type)
    ]
    if len(images) != 1 or not labels:
        raise DataError(
            f"{path.name} is not image Parquet; its columns are {', '.join(schema.names)}",
            where=str(path),
            hint="it needs a column of struct<bytes, path> and an integer column " + " or ".join(candidates),
        )
    return images[0], labels[0]
