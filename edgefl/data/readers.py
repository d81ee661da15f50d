"""Dataset files on disk: where they are looked for, and how each layout is read.

Three layouts are tried in this order, in the data folder and in its subfolder named after the dataset; the
first that is present is read:

- torchvision's own, such as ``MNIST/raw/train-images-idx3-ubyte`` or ``cifar-10-batches-py/``,
- Hugging Face image Parquet: ``train*.parquet`` and ``test*.parquet``,
- a tree of images: ``train/<class>/*.png`` and ``test/<class>/*.png``, or ``.jpg``.

If none is present, torchvision may download its own.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from edgefl.core.caches import cache_folder
from edgefl.core.errors import DataError
from edgefl.core.images import Form, Pixels, explained, files_decoded
from edgefl.data import image_parquet
from edgefl.data.image_cache import decoded_once
from edgefl.data.image_folders import class_folders, listed
from edgefl.data.source import checked
from edgefl.data.spec import Arrays, Ints, Spec
from edgefl.protocol.vision import torchvision

_Part: TypeAlias = tuple[Pixels, Ints]
_Layout: TypeAlias = Callable[[Spec, Path], Arrays | None]

INSIDE = {"CIFAR10": "cifar-10-batches-py", "CIFAR100": "cifar-100-python"}
"""Where torchvision's classes keep their files under their root, if not in ``<class>/raw``."""


class _Published(NamedTuple):
    """A dataset of torchvision's.

    Attributes:
        inside: the folder of its files, under its root.
        dataset: imports its class, or what makes a part.
    """

    inside: str
    dataset: Callable[[], Callable[..., Any]]


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
    # torchvision takes a second to import, and most layouts do not need it.
    published = _Published(
        INSIDE.get(dataset, f"{dataset}/raw"), lambda: getattr(torchvision().datasets, dataset)
    )
    return _read(spec, folder, published, download=download)


def read_as(spec: Spec, folder: Path | None, dataset: type[Any], *, download: bool) -> Arrays:
    """``read`` with torchvision's dataset class itself, or one derived from it.

    Raises:
        DataError: the folder does not exist, holds none of the layouts (and a download is not allowed or
            failed), or holds files that are unreadable, incomplete, or of another dataset.
    """
    inside = str(getattr(dataset, "base_folder", f"{dataset.__name__}/raw"))
    return _read(spec, folder, _Published(inside, lambda: dataset), download=download)


def read_by(
    spec: Spec, folder: Path | None, inside: str, dataset: Callable[[], Callable[..., Any]], *, download: bool
) -> Arrays:
    """``read`` with what makes a part: (root, train=..., download=...) -> data and targets.

    Raises:
        DataError: see ``read_as``.
    """
    return _read(spec, folder, _Published(inside, dataset), download=download)


def found_in(name: str, folder: Path | None, below: Sequence[str], parts: Sequence[str], recipe: str) -> Path:
    """The folder of a dataset that is in one layout: the data folder or one of those below it.

    Args:
        name: the dataset.
        folder: the data folder; None for the user's cache.
        below: names that the dataset's own folder may have.
        parts: what has to be in it.
        recipe: how to get them, for the message.

    Raises:
        DataError: there is none.
    """
    root = _root(folder)
    for place in (root, *(root / one for one in below)):
        if all((place / part).exists() for part in parts):
            return place
    raise DataError(
        f"no {name} files in {root}", where=f"{root}, and {' and '.join(below)} in it", hint=recipe
    )


def _root(folder: Path | None) -> Path:
    if folder is not None and not folder.is_dir():
        raise DataError(
            f"{folder} is not a directory", where="--data-dir", hint="pass the folder that holds the data"
        )
    return folder or cache_folder() / "data"


def _read(spec: Spec, folder: Path | None, published: _Published, *, download: bool) -> Arrays:
    root = _root(folder)
    names = sorted({spec.name, spec.name.replace("-", "_")})
    layouts: tuple[_Layout, ...] = (
        partial(_torchvision_files, published=published, download=download),
        _parquet,
        _tree,
    )
    for layout in layouts:
        for place in (root, *(root / name for name in names)):
            found = layout(spec, place)
            if found is not None:
                return checked(spec, found, str(place))
    if download:
        return checked(spec, _downloaded(spec, root, published), str(root))
    raise DataError(
        f"no {spec.name} files in {root}",
        where=f"{root}, and {' and '.join(names)} in it",
        hint=f"it needs {published.inside} (torchvision), train*.parquet and test*.parquet, or "
        "train/<class>/*.png and test/<class>/*.png: pass --data-dir DIR, or allow the download",
    )


# --- torchvision's own layout


def _torchvision_files(spec: Spec, place: Path, *, published: _Published, download: bool) -> Arrays | None:
    where = place / published.inside
    if not where.is_dir():
        return None
    hint = "remove the folder and allow the download"
    with explained(f"{spec.name}'s files are unreadable or incomplete", str(where), hint):
        return _by_torchvision(published.dataset(), place, download=download)


def _downloaded(spec: Spec, root: Path, published: _Published) -> Arrays:
    with explained(f"{spec.name} could not be downloaded", str(root), "pass --data-dir DIR with its files"):
        root.mkdir(parents=True, exist_ok=True)
        return _by_torchvision(published.dataset(), root, download=True)


def _by_torchvision(dataset: Callable[..., Any], root: Path, *, download: bool) -> Arrays:
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
    form = Form(spec.shape, spec.name)

    def decode() -> Arrays:
        return Arrays(*_parquet_part(train, form), *_parquet_part(test, form))

    how = {"layout": "parquet", "shape": spec.shape, "files": [len(train), len(test)]}
    return decoded_once([*train, *test], how, decode).arrays


def _parquet_part(files: Sequence[Path], form: Form) -> _Part:
    labels = image_parquet.labels_of(files)
    return image_parquet.images_of(files, len(labels), form), labels


# --- a tree of images


def _tree(spec: Spec, place: Path) -> Arrays | None:
    train, test = place / "train", place / "test"
    if not train.is_dir() and not test.is_dir():
        return None
    folders = _class_folders(spec, train)
    if set(_class_folders(spec, test)) != set(folders):
        raise DataError("train and test have different class folders", where=str(place))
    listings = [listed(part, folders) for part in (train, test)]
    form = Form(spec.shape, spec.name)

    def decode() -> Arrays:
        train_x, test_x = (files_decoded(one.files, form) for one in listings)
        return Arrays(train_x, listings[0].labels, test_x, listings[1].labels)

    counts = [np.bincount(one.labels, minlength=spec.classes).tolist() for one in listings]
    how = {"layout": "tree", "shape": spec.shape, "counts": counts}
    return decoded_once([file for one in listings for file in one.files], how, decode).arrays


def _class_folders(spec: Spec, part: Path) -> list[str]:
    """The class folders' names in the order of labels.

    That is the dataset's order if the names are its class names, numeric order if they are numbers, and
    alphabetical order otherwise.
    """
    if not part.is_dir():
        raise DataError(
            f"{spec.name}'s image folders are incomplete: no {part.name}/", where=str(part.parent)
        )
    names = class_folders(part)
    if len(names) != spec.classes:
        raise DataError(
            f"{len(names)} class folders, but {spec.name} has {spec.classes} classes", where=str(part)
        )
    order = {_plain(name): place for place, name in enumerate(spec.class_names)}
    if {_plain(name) for name in names} == set(order):
        return sorted(names, key=lambda name: order[_plain(name)])
    return names


def _plain(name: str) -> str:
    """A class name as a folder may spell it: ``T-shirt/top`` and ``t_shirt_top`` are the same."""
    return re.sub(r"[\W_]+", "_", name.lower())
