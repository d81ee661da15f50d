"""Labelled images that are not decoded yet: a folder of class folders, or Hugging Face's image Parquet."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import compress, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgefl.core.arrays import Ints
from edgefl.core.errors import DataError
from edgefl.core.extras import needs
from edgefl.data.dataset import Arrays
from edgefl.data.image_cache import decoded_once
from edgefl.data.images import SUFFIXES, Encoded, decoded, explained

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
        names: of the classes; empty if the files do not say them.
        users: whose each is, (N,), by name; None if that is not asked for.
    """

    files: Sequence[Path]
    labels: Ints
    encoded: Callable[[], Iterable[Encoded]]
    names: tuple[str, ...] = ()
    users: NDArray[np.str_] | None = None

    def of(self, chosen: Ints) -> Pictures:
        """Some of them, by sorted indices."""
        mask = np.isin(np.arange(len(self.labels)), chosen)
        return replace(
            self,
            labels=self.labels[chosen],
            encoded=lambda: compress(self.encoded(), mask),
            users=None if self.users is None else self.users[chosen],
        )

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


def parquet_files(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files of training and of test images in a folder, in the order of images; there may be none."""
    train, test = (sorted(folder.glob(f"{part}*.parquet")) for part in ("train", "test"))
    return train, test


def image_parquet(files: Sequence[Path], label: str | None = None, user: str | None = None) -> Pictures:
    """The images in Parquet files with a column of encoded images and one of labels.

    Args:
        files: in the order of images; the first says which column is which.
        label: the column of labels; None for the first of ``LABELS`` that has integers.
        user: the column that says whose an image is.

    Raises:
        DataError: pyarrow is missing, the files are not image Parquet, or an image has no label or no user.
    """
    needs("pyarrow", "Parquet files need", "parquet", str(files[0]))
    import pyarrow as pa
    from pyarrow import parquet

    with explained(f"{files[0].name} is unreadable", str(files[0])):
        schema = parquet.read_schema(files[0])
    images = [field.name for field in schema if _has_bytes(field.type)]
    known = LABELS if label is None else (label,)
    labels = [one for one in known if one in schema.names and pa.types.is_integer(schema.field(one).type)]
    if len(images) != 1 or not labels:
        raise DataError(
            f"{files[0].name} is not image Parquet; its columns are {', '.join(schema.names)}",
            where=str(files[0]),
            hint="it needs a column of struct<bytes, path> and an integer column " + " or ".join(known),
        )
    if user is not None and not (user in schema.names and _is_name(schema.field(user).type)):
        raise DataError(
            f"{files[0].name} has no column {user!r} of names or whole numbers",
            where=str(files[0]),
            hint=f"its columns are {', '.join(schema.names)}",
        )
    rows: dict[str, list[Any]] = {name: [] for name in (labels[0], user) if name is not None}
    for path in files:
        # Neither by parquet.read_table nor as NumPy arrays: both import pandas, which takes a second.
        with explained(f"{path.name} is unreadable", str(path)):
            table = parquet.ParquetFile(path).read(list(rows))
            for name, values in rows.items():
                values.extend(table[name].to_pylist())
    folder = str(files[0].parent)
    for name, values in rows.items():
        if missing := values.count(None):
            raise DataError(f"{missing:,} of {len(values):,} images have no {name}", where=folder)
    with explained(f"{labels[0]!r} must be numbers of classes, from 0", folder):
        numbers = np.array(rows[labels[0]], dtype=np.int64)
    return Pictures(
        files=files,
        labels=numbers,
        encoded=lambda: _encoded(files, images[0]),
        names=_class_names(schema.metadata, labels[0]),
        users=None if user is None else np.array(list(map(str, rows[user])), dtype=np.str_),
    )


def _is_name(kind: Any) -> bool:
    """Whether a column's type is text or integers."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind))


def _has_bytes(kind: Any) -> bool:
    """Whether a column's type is that of encoded images."""
    from pyarrow import types

    inner = {field.name: field.type for field in kind} if types.is_struct(kind) else {}
    return "bytes" in inner and (types.is_binary(inner["bytes"]) or types.is_large_binary(inner["bytes"]))


def _class_names(metadata: Any, label: str) -> tuple[str, ...]:
    """The classes' names as Hugging Face's metadata has them; empty if there are none."""
    with suppress(KeyError, TypeError, ValueError):
        features = json.loads(metadata[b"huggingface"])["info"]["features"]
        return tuple(map(str, features[label]["names"]))
    return ()


def _encoded(files: Sequence[Path], column: str) -> Iterator[Encoded]:
    """The images, some at a time, as they may be larger than the memory."""
    from pyarrow import parquet

    for path in files:
        with explained(f"{path.name} is unreadable", str(path)), parquet.ParquetFile(path) as file:
            batches = file.iter_batches(_BATCH, columns=[column])
            blobs = (blob for batch in batches for blob in batch.column(0).field("bytes").to_pylist())
            for place, blob in enumerate(blobs):
                name = f"{path}, image {place}"
                if blob is None:
                    what, hint = "only a path is stored", "save the dataset with its images embedded"
                    raise DataError(f"an image has no content: {what}", where=name, hint=hint)
                yield name, blob
