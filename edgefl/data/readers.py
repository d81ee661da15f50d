"""Dataset files on disk: where they are looked for, and how each layout is read.

Two layouts are tried in this order, in the data folder and in its subfolder named after the dataset; the
first that is present is read:

- torchvision's own, such as ``MNIST/raw/train-images-idx3-ubyte`` or ``cifar-10-batches-py/``,
- Hugging Face image Parquet: ``train*.parquet`` and ``test*.parquet``.

If neither is present, torchvision may download its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from edgefl.core.arrays import Ints
from edgefl.core.errors import DataError
from edgefl.core.files import cache_folder
from edgefl.data.dataset import Arrays, Source, Spec, checked
from edgefl.data.images import Pixels, explained
from edgefl.data.pictures import decoded_pictures, image_parquet, parquet_files
from edgefl.protocol.vision import torchvision

_INSIDE = {"CIFAR10": "cifar-10-batches-py", "CIFAR100": "cifar-100-python"}


def known(spec: Spec, dataset: str, where: str = "", make: Callable[..., Any] | None = None) -> Source:
    """A dataset that torchvision knows; the arguments are those of ``read`` and of ``Source``."""
    return Source(spec, partial(read, spec, dataset, make=make), where)


def read(
    spec: Spec,
    dataset: str,
    folder: Path | None,
    *,
    download: bool,
    make: Callable[..., Any] | None = None,
) -> Arrays:
    """A dataset from ``folder``, in whichever layout it is.

    Args:
        spec: what the files must hold.
        dataset: the name of its class in ``torchvision.datasets``.
        folder: the data folder; None for the user's cache, which is also where downloads go.
        download: whether torchvision may download the files if neither layout is present.
        make: makes a part, (root, train=..., download=...) -> data and targets; by default the class.

    Raises:
        DataError: the folder does not exist, holds neither of the layouts (and a download is not allowed or
            failed), or holds files that are unreadable, incomplete, or of another dataset.
    """
    inside = _INSIDE.get(dataset, f"{dataset}/raw")
    places = _places(folder, sorted({spec.name, spec.name.replace("-", "_")}))
    by_torchvision = next((place for place in places if (place / inside).is_dir()), None)
    in_parquet = next((place for place in places if any(parquet_files(place))), None)
    if by_torchvision is not None:
        hint = f"remove {inside} and allow the download"
        with explained(f"{spec.name} is unreadable or incomplete", str(by_torchvision), hint):
            found = _by_torchvision(dataset, make, by_torchvision, download=download)
    elif in_parquet is not None:
        found = _of_parquet(spec, in_parquet)
    elif download:
        hint = "pass --data-dir DIR with its files"
        with explained(f"{spec.name} could not be downloaded", str(places[0]), hint):
            found = _by_torchvision(dataset, make, places[0], download=True)
    else:
        recipe = (
            f"it needs {inside} (torchvision), or train*.parquet and test*.parquet: pass --data-dir DIR, or "
            "allow the download"
        )
        raise _absent(spec.name, places, recipe)
    return checked(spec, found, str(by_torchvision or in_parquet or places[0]))


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
    places = _places(folder, below)
    for place in places:
        if all((place / part).exists() for part in parts):
            return place
    raise _absent(name, places, recipe)


def _places(folder: Path | None, below: Sequence[str]) -> list[Path]:
    """Where a dataset is looked for: the data folder first, then its folders of some names.

    Raises:
        DataError: the data folder does not exist.
    """
    if folder is not None and not folder.is_dir():
        raise DataError(
            f"{folder} is not a directory", where="--data-dir", hint="pass the folder that holds the data"
        )
    root = folder or cache_folder() / "data"
    return [root, *(root / name for name in below)]


def _absent(name: str, places: list[Path], recipe: str) -> DataError:
    root, *below = places
    where = f"{root}, and {' and '.join(str(place.relative_to(root)) for place in below)} in it"
    return DataError(f"no {name} files in {root}", where=where, hint=recipe)


def _of_parquet(spec: Spec, place: Path) -> Arrays:
    train, test = parquet_files(place)
    if not train or not test:
        missing = "test*.parquet" if train else "train*.parquet"
        raise DataError(f"{spec.name}'s Parquet files are incomplete: no {missing}", where=str(place))
    found = decoded_pictures(image_parquet(train), image_parquet(test), spec.shape, fit=False)
    # The dataset's name says which images they are.
    return replace(found, content="")


def _by_torchvision(dataset: str, make: Callable[..., Any] | None, root: Path, *, download: bool) -> Arrays:
    # torchvision takes a second to import, and most layouts do not need it.
    make = make or getattr(torchvision().datasets, dataset)
    root.mkdir(parents=True, exist_ok=True)
    # NumPy's of CIFAR's pickles of 2009, and tarfile's of archives whose md5 torchvision has checked.
    with warnings.catch_warnings(action="ignore"):
        train, test = (make(root, train=part, download=download) for part in (True, False))
    return Arrays(*_unpacked(train), *_unpacked(test))


def _unpacked(found: Any) -> tuple[Pixels, Ints]:
    """The arrays inside a torchvision dataset: (N, H, W) if grey, (N, H, W, C) if coloured."""
    x = torch.as_tensor(found.data).numpy()  # a tensor in MNIST, an array in CIFAR
    x = x[:, None] if x.ndim == len("NHW") else x.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(x, dtype=np.uint8), torch.as_tensor(found.targets).to(torch.int64).numpy()
