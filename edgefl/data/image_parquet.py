"""Image Parquet as Hugging Face datasets are published: a column of encoded images and one of labels."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.core.errors import DataError
from edgefl.core.extras import needs
from edgefl.core.images import Encoded, Form, Pixels, decoded, explained
from edgefl.data.spec import Ints

LABELS = ("label", "fine_label", "labels")
"""Names of label columns, in the order in which they are looked for."""
# Images read at a time.
_BATCH = 1000


def labels_of(files: Sequence[Path], column: str | None = None) -> Ints:
    """The labels of files, (N,) int64, without reading their images.

    Args:
        files: in the order of images.
        column: of the labels; None for the first of ``LABELS`` that is there.

    Raises:
        DataError: pyarrow is missing, or a file is not image Parquet.
    """
    found = []
    for path in files:
        with _opened(path) as file:
            _, label = _columns(file.schema_arrow, path, column)
            with explained(f"{path.name} is unreadable", str(path)):
                values = file.read(columns=[label])[label]
            if values.null_count:
                raise DataError(
                    f"{path.name} has images without a label: {values.null_count} of {len(values)}",
                    where=str(path),
                )
            found.append(values.to_numpy().astype(np.int64))
    return np.concatenate(found)


def users_of(files: Sequence[Path], column: str) -> Ints:
    """Whose each image is, (N,) int64, numbered in the order of the column's values as text.

    Raises:
        DataError: pyarrow is missing, or a file has no such column.
    """
    found: list[Any] = []
    for path in files:
        with _opened(path) as file:
            names = file.schema_arrow.names
            if column not in names:
                raise DataError(
                    f"{path.name} has no column {column!r}; its columns are {', '.join(names)}",
                    where=str(path),
                    hint="task.dataset.user must name one",
                )
            with explained(f"{path.name} is unreadable", str(path)):
                users = file.read(columns=[column])[column].to_pylist()
        odd = sum(not isinstance(one, str | int) for one in users)
        if odd:
            raise DataError(
                f"in {odd:,} of {len(users):,} rows, {column!r} has neither a name nor a whole number",
                where=str(path),
                hint="every image needs a user; remove the others, or name another column",
            )
        found += map(str, users)
    return np.unique(np.array(found), return_inverse=True)[1].astype(np.int64)


def images_of(files: Sequence[Path], count: int, form: Form, column: str | None = None) -> Pixels:
    """The images of files, (N, C, H, W).

    Raises:
        DataError: see ``labels_of`` and ``decoded``.
    """
    return decoded(_encoded(files, column), count, form)


def first_images(files: Sequence[Path], column: str | None, count: int) -> Iterator[Encoded]:
    """The first images, at most ``count``.

    Raises:
        DataError: see ``labels_of``.
    """
    return islice(_encoded(files, column), count)


def class_names(path: Path, column: str | None = None) -> tuple[str, ...]:
    """The classes' names as Hugging Face's metadata has them; empty if there are none.

    Raises:
        DataError: see ``labels_of``.
    """
    with _opened(path) as file:
        schema = file.schema_arrow
        _, label = _columns(schema, path, column)
        with suppress(KeyError, TypeError, ValueError):
            features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
            return tuple(map(str, features[label]["names"]))
    return ()


def _opened(path: Path) -> Any:
    needs("pyarrow", "Parquet files need", "parquet", str(path))
    from pyarrow import parquet

    with explained(f"{path.name} is unreadable", str(path)):
        return parquet.ParquetFile(path)


def _encoded(files: Sequence[Path], column: str | None) -> Iterator[Encoded]:
    for path in files:
        place = 0
        with _opened(path) as file:
            image, _ = _columns(file.schema_arrow, path, column)
            batches = file.iter_batches(_BATCH, columns=[image])
            while True:
                with explained(f"{path.name} is unreadable", str(path)):
                    batch = next(batches, None)
                if batch is None:
                    break
                for blob in batch.column(0).field("bytes").to_pylist():
                    name = f"{path}, image {place}"
                    if blob is None:
                        raise DataError(
                            "an image has no content: only a path is stored",
                            where=name,
                            hint="save the dataset with its images embedded",
                        )
                    yield name, blob
                    place += 1


def _columns(schema: Any, path: Path, column: str | None) -> tuple[str, str]:
    """The names of the image column, recognised by its type, and of the label column."""
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
