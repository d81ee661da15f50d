"""Dataset files on disk: where they are looked for, and how each layout is read.

Three layouts are tried in this order, in the data folder and in its subfolder named after the dataset; the
first that is present is read:

- torchvision's own, such as ``MNIST/raw/train-images-idx3-ubyte`` or ``cifar-10-batches-py/``,
- Hugging Face image Parquet: ``train*.parquet`` and ``test*.parquet``,
- a tree of images: ``train/<class>/*.png`` and ``test/<class>/*.png``, or ``.jpg``.

If none is present, torchvision may download its own.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from edgefl.core.errors import DataError
from edgefl.data.spec import Arrays, Ints, Pixels, Spec
from edgefl.protocol.vision import torchvision

_Part: TypeAlias = tuple[Pixels, Ints]
_Layout: TypeAlias = Callable[[Spec, Path], Arrays | None]

_LABELS = ("label", "fine_label", "labels")
_SUFFIXES = {".png", ".jpg", ".jpeg"}


def read(spec: Spec, folder: Path | None, dataset: str, *, download: bool) -> Arrays:
    """A dataset from ``folder``, in whichever layout it is.

    Args:
        spec: what the files must hold.
        folder: the data folder; None for the user's cache, which is also where downloads go.
        dataset: the name of its class in ``torchvision.datasets``.
        download: whether torchvision may download the files if no layout is present.

    Raises:
        DataError: see ``read_as``.
    """
    return read_as(spec, folder, getattr(torchvision().datasets, dataset), download=download)


def read_as(spec: Spec, folder: Path | None, dataset: type[Any], *, download: bool) -> Arrays:
    """``read`` with torchvision's dataset class itself, or one derived from it.

    Raises:
        DataError: the folder does not exist, holds none of the layouts (and a download is not allowed or
            failed), or holds files that are unreadable, incomplete, or of another dataset.
    """
    if folder is not None and not folder.is_dir():
        raise DataError(
            f"{folder} is not a directory", where="--data-dir", hint="pass the folder that holds the data"
        )
    root = folder or _cache()
    names = sorted({spec.name, spec.name.replace("-", "_")})
    layouts: tuple[_Layout, ...] = (
        partial(_torchvision_files, dataset=dataset, download=download),
        _parquet,
        _tree,
    )
    for layout in layouts:
        for place in (root, *(root / name for name in names)):
            found = layout(spec, place)
            if found is not None:
                return _checked(spec, found, place)
    if download:
        return _checked(spec, _downloaded(spec, root, dataset), root)
    raise DataError(
        f"no {spec.name} files in {root}",
        where=f"{root}, and {' and '.join(names)} in it",
        hint=f"it needs {_inside(dataset)} (torchvision), train*.parquet and test*.parquet, or "
        "train/<class>/*.png and test/<class>/*.png: pass --data-dir DIR, or allow the download",
    )


def _cache() -> Path:
    """Where downloads go without a folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "edgefl" / "data"


def _checked(spec: Spec, arrays: Arrays, where: Path) -> Arrays:
    """``arrays``, if they fit ``spec``.

    Raises:
        DataError: the images have another shape, or the labels are not the dataset's classes.
    """
    parts = {"training": (arrays.train_x, arrays.train_y), "test": (arrays.test_x, arrays.test_y)}
    for part, (x, y) in parts.items():
        if len(x) != len(y) or not len(x):
            raise DataError(
                f"{spec.name}'s {part} files hold {len(x)} images and {len(y)} labels", where=str(where)
            )
        if x.shape[1:] != spec.shape:
            raise DataError(
                f"the {part} images have shape {x.shape[1:]}, {spec.name}'s have {spec.shape}",
                where=str(where),
            )
        classes = np.unique(y)
        if (
            classes[0] < 0
            or classes[-1] >= spec.classes
            or (part == "training" and len(classes) != spec.classes)
        ):
            raise DataError(
                f"the {part} labels have {len(classes)} classes, from {classes[0]} to {classes[-1]}; "
                f"{spec.name} has {spec.classes}, from 0 to {spec.classes - 1}",
                where=str(where),
                hint="are these files of another dataset?",
            )
    return arrays


@contextmanager
def _explained(what: str, where: str, hint: str = "") -> Iterator[None]:
    """Turns any error that a library raises on a bad file into a ``DataError`` that begins with ``what``."""
    try:
        yield
    except (DataError, MemoryError):
        raise
    except Exception as error:
        detail = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{what}: {detail}", where=where, hint=hint) from error


# --- torchvision's own layout


def _inside(dataset: type[Any]) -> str:
    """The folder that torchvision's class keeps its files in, under its root."""
    return str(getattr(dataset, "base_folder", f"{dataset.__name__}/raw"))


def _torchvision_files(spec: Spec, place: Path, *, dataset: type[Any], download: bool) -> Arrays | None:
    if not (place / _inside(dataset)).is_dir():
        return None
    where = place / _inside(dataset)
    hint = "remove the folder and allow the download"
    with _explained(f"{spec.name}'s files are unreadable or incomplete", str(where), hint):
        return _by_torchvision(dataset, place, download=download)


def _downloaded(spec: Spec, root: Path, dataset: type[Any]) -> Arrays:
    with _explained(f"{spec.name} could not be downloaded", str(root), "pass --data-dir DIR with its files"):
        root.mkdir(parents=True, exist_ok=True)
        return _by_torchvision(dataset, root, download=True)


def _by_torchvision(dataset: type[Any], root: Path, *, download: bool) -> Arrays:
    with warnings.catch_warnings():
        # CIFAR's pickles of 2009 name a dtype in a way that NumPy 2.4.0 to 2.4.4 warn about.
        warnings.filterwarnings(
            "ignore", r"dtype\(\): align should be", np.exceptions.VisibleDeprecationWarning
        )
        # torchvision unpacks archives without a filter, after it has checked their md5.
        warnings.filterwarnings("ignore", "Python 3.14 will, by default, filter", DeprecationWarning)
        train, test = (dataset(root, train=part, download=download) for part in (True, False))
    return Arrays(*_unpacked(train), *_unpacked(test))


def _unpacked(found: Any) -> _Part:
    """The arrays inside a torchvision dataset: (N, H, W) if grey, (N, H, W, C) if coloured."""
    x = torch.as_tensor(found.data).numpy()  # a tensor in MNIST, an array in CIFAR
    x = x[:, None] if x.ndim == len("NHW") else x.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(x, dtype=np.uint8), torch.as_tensor(found.targets).to(torch.int64).numpy()


# --- Hugging Face image Parquet


def _parquet(spec: Spec, place: Path) -> Arrays | None:
    train, test = (sorted(place.glob(f"{part}*.parquet")) for part in ("train", "test"))
    if not train and not test:
        return None
    if not train or not test:
        missing = "test*.parquet" if train else "train*.parquet"
        raise DataError(f"{spec.name}'s Parquet files are incomplete: no {missing}", where=str(place))
    return Arrays(*_parquet_part(spec, train), *_parquet_part(spec, test))


def _parquet_part(spec: Spec, files: Sequence[Path]) -> _Part:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        hint = "pip install 'edgefl-emulator[parquet]'"
        raise DataError("Parquet files need pyarrow", where=str(files[0]), hint=hint) from error
    blobs: list[bytes] = []
    labels = []
    for path in files:
        with _explained(f"{path.name} is unreadable", str(path)), parquet.ParquetFile(path) as file:
            image, label = _columns(file.schema_arrow, path)
            table = file.read(columns=[image, label])
            blobs += pa.chunked_array(table[image]).combine_chunks().field("bytes").to_pylist()
            labels.append(table[label].to_numpy().astype(np.int64))
    return _decoded(spec, blobs, files[0].parent), np.concatenate(labels)


def _columns(schema: Any, path: Path) -> tuple[str, str]:
    """The names of the image column, recognised by its type, and of the label column, by its name."""
    from pyarrow import types

    images = [
        field.name
        for field in schema
        if types.is_struct(field.type)
        and any(inner.name == "bytes" and types.is_binary(inner.type) for inner in field.type)
    ]
    labels = [name for name in _LABELS if name in schema.names and types.is_integer(schema.field(name).type)]
    if len(images) != 1 or not labels:
        raise DataError(
            f"{path.name} is not image Parquet; its columns are {', '.join(schema.names)}",
            where=str(path),
            hint=f"it needs a column of struct<bytes, path> and an integer column {' or '.join(_LABELS)}",
        )
    return images[0], labels[0]


# --- a tree of images


def _tree(spec: Spec, place: Path) -> Arrays | None:
    train, test = place / "train", place / "test"
    if not train.is_dir() and not test.is_dir():
        return None
    folders = _class_folders(spec, train)
    if set(_class_folders(spec, test)) != set(folders):
        raise DataError("train and test have different class folders", where=str(place))
    return Arrays(*_tree_part(spec, train, folders), *_tree_part(spec, test, folders))


def _class_folders(spec: Spec, part: Path) -> list[str]:
    """The class folders' names in the order of labels.

    That is the dataset's order if the names are its class names, numeric order if they are numbers, and
    alphabetical order otherwise.
    """
    if not part.is_dir():
        raise DataError(
            f"{spec.name}'s image folders are incomplete: no {part.name}/", where=str(part.parent)
        )
    names = sorted(path.name for path in part.iterdir() if path.is_dir() and not path.name.startswith("."))
    if len(names) != spec.classes:
        raise DataError(
            f"{len(names)} class folders, but {spec.name} has {spec.classes} classes", where=str(part)
        )
    order = {_plain(name): place for place, name in enumerate(spec.class_names)}
    if {_plain(name) for name in names} == set(order):
        return sorted(names, key=lambda name: order[_plain(name)])
    return sorted(names, key=int) if all(name.isdecimal() for name in names) else names


def _plain(name: str) -> str:
    """A class name as a folder may spell it: ``T-shirt/top`` and ``t_shirt_top`` are the same."""
    return re.sub(r"[\W_]+", "_", name.lower())


def _tree_part(spec: Spec, part: Path, folders: Sequence[str]) -> _Part:
    files: list[Path] = []
    labels: list[int] = []
    for label, folder in enumerate(folders):
        found = sorted(path for path in (part / folder).iterdir() if path.suffix.lower() in _SUFFIXES)
        files += found
        labels += [label] * len(found)
    return _decoded(spec, files, part), np.array(labels, dtype=np.int64)


# --- images


def _decoded(spec: Spec, images: Sequence[bytes | Path], where: Path) -> Pixels:
    """Decodes encoded images, or image files, to (N, C, H, W).

    One after another: for images this small PIL spends most of its time in Python, reading headers, and
    threads would only wait for each other.
    """
    pixels = np.empty((len(images), *spec.shape), dtype=np.uint8)
    for place, source in enumerate(images):
        name = str(source) if isinstance(source, Path) else f"{where}, image {place}"
        with _explained("an image is unreadable", name):
            pixels[place] = _image(spec, source, name)
    return pixels


def _image(spec: Spec, source: bytes | Path, name: str) -> Pixels:
    from PIL import Image

    with Image.open(BytesIO(source) if isinstance(source, bytes) else source) as image:
        mode = "L" if image.mode in {"1", "L", "LA"} else "RGB"
        found = np.asarray(image if image.mode == mode else image.convert(mode))
    x = found[None] if mode == "L" else found.transpose(2, 0, 1)
    if x.shape != spec.shape:
        raise DataError(f"an image has shape {x.shape}, {spec.name}'s have {spec.shape}", where=name)
    return x
