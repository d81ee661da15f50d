"""Images in Parquet files, as Hugging Face datasets are published.

``path`` holds ``train*.parquet`` and ``test*.parquet``, there or in its folder ``data``, or other Parquet
files, of whose images a share is kept for testing. Labels are whole numbers from 0; classes have the names in
Hugging Face's metadata, or their numbers. Needs pyarrow: pip install 'edgefl-emulator[parquet]'.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from edgefl.core.errors import DataError
from edgefl.core.host import needs
from edgefl.data.dataset import Source
from edgefl.data.images import Encoded, OwnImages, Pictures, explained

# Names of label columns, in the order in which they are looked for.
_LABELS = ("label", "fine_label", "labels")
# Far above any labelled image dataset's; a label beyond it is no class number.
_MOST_CLASSES = 100_000


class Params(OwnImages):
    label: Annotated[
        str | None, Field(description="the column of labels; null for label, fine_label or labels")
    ] = None
    user: Annotated[
        str | None, Field(description="the column that says whose an image is, for by-user; null for none")
    ] = None

    def build(self) -> Source:
        """Raises a ``DataError`` where the files are not there, or are not image Parquet."""
        parts = [image_parquet(part, self.label, self.user) for part in _files(self.root()) if part]
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
        return self.source(names or tuple(map(str, range(classes))), *parts)


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


def parquet_files(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files of training and of test images in a folder, in the order of images; there may be none."""
    train, test = (sorted(folder.glob(f"{part}*.parquet")) for part in ("train", "test"))
    return train, test


def image_parquet(files: Sequence[Path], label: str | None = None, user: str | None = None) -> Pictures:
    """The images in files, in this order, of which the first says which column is which; see ``Params``."""
    needs("pyarrow", "Parquet files need", "parquet", str(files[0]))
    from pyarrow import parquet, types

    with explained(f"{files[0].name} is unreadable", str(files[0])):
        schema = parquet.read_schema(files[0])
    has = f"; its columns are {', '.join(schema.names)}"
    images = [
        field.name
        for field in schema
        if types.is_struct(field.type)
        and any(
            each.name == "bytes" and (types.is_binary(each.type) or types.is_large_binary(each.type))
            for each in field.type
        )
    ]
    known = _LABELS if label is None else (label,)
    labels = [one for one in known if one in schema.names and types.is_integer(schema.field(one).type)]
    if len(images) != 1 or not labels:
        hint = "it needs a column of struct<bytes, path> and an integer column " + " or ".join(known)
        raise DataError(f"{files[0].name} is not image Parquet{has}", where=str(files[0]), hint=hint)
    rows: dict[str, list[Any]] = {name: [] for name in schema.names if name in {labels[0], user}}
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
    users = None
    if user is not None:
        if not {type(one) for one in rows.get(user, [None])} <= {str, int}:
            what = f"{files[0].name} has no column {user!r} of names or whole numbers"
            raise DataError(what + has, where=str(files[0]))
        users = np.array(list(map(str, rows[user])), dtype=np.str_)
    with explained(f"{labels[0]!r} must be numbers of classes, from 0", folder):
        numbers = np.array(rows[labels[0]], dtype=np.int64)
    names: tuple[str, ...] = ()
    with suppress(KeyError, TypeError, ValueError):  # there is no metadata, or not Hugging Face's
        features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
        names = tuple(map(str, features[labels[0]]["names"]))
    return Pictures(files, numbers, lambda: _encoded(files, images[0]), names, users)


def _encoded(files: Sequence[Path], column: str) -> Iterator[Encoded]:
    """The images, some at a time, as they may be larger than the memory."""
    from pyarrow import parquet

    for path in files:
        with explained(f"{path.name} is unreadable", str(path)), parquet.ParquetFile(path) as file:
            batches = file.iter_batches(1000, columns=[column])
            blobs = (blob for batch in batches for blob in batch.column(0).field("bytes").to_pylist())
            for place, blob in enumerate(blobs):
                name = f"{path}, image {place}"
                if blob is None:
                    what, hint = "only a path is stored", "save the dataset with its images embedded"
                    raise DataError(f"an image has no content: {what}", where=name, hint=hint)
                yield name, blob
