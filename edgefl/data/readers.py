"""Published datasets' files: where they are looked for, and how each layout is read.

Of those that torchvision knows, two layouts are tried in this order, in the data folder and in its subfolder
named after the dataset; the first that is present is read:

- torchvision's own, such as ``MNIST/raw/train-images-idx3-ubyte`` or ``cifar-10-batches-py/``,
- Hugging Face image Parquet: ``train*.parquet`` and ``test*.parquet``.

If neither is present, torchvision may download its own. The others are read as their archives unpack.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from edgefl.core.arrays import Ints
from edgefl.core.errors import DataError
from edgefl.core.files import cache_folder
from edgefl.data.dataset import Arrays, Labels, Pixels, Source, Spec
from edgefl.data.images import decoded_pictures, explained
from edgefl.data.sources.parquet import image_parquet, parquet_files
from edgefl.protocol.vision import torchvision

_INSIDE = {"CIFAR10": "cifar-10-batches-py", "CIFAR100": "cifar-100-python"}


def known(spec: Spec, dataset: str, make: Callable[..., Any] | None = None) -> Source:
    """A dataset that torchvision knows, in whichever layout it is.

    Args:
        dataset: the name of its class in ``torchvision.datasets``.
        make: makes a part, (root, train=..., download=...) -> data and targets; by default the class.
    """
    inside = _INSIDE.get(dataset, f"{dataset}/raw")
    below = sorted({spec.name, spec.name.replace("-", "_")})

    def load(folder: Path | None, *, download: bool) -> Arrays:
        places = _places(folder, below)
        by_torchvision = next((place for place in places if (place / inside).is_dir()), None)
        in_parquet = next((place for place in places if all(parquet_files(place))), None)
        if by_torchvision is None and in_parquet is not None:
            train, test = map(image_parquet, parquet_files(in_parquet))
            found = decoded_pictures(train, test, spec.shape, fit=False)
            # The dataset's name says which images they are.
            return replace(found, content="", where=str(in_parquet))
        if by_torchvision is None and not download:
            ways = "pass --data-dir DIR, or allow the download"
            recipe = f"it needs {inside} (torchvision), or train*.parquet and test*.parquet: {ways}"
            raise _absent(spec.name, places, recipe)
        place, what, hint = places[0], "could not be downloaded", "pass --data-dir DIR with its files"
        if by_torchvision is not None:
            place, what = by_torchvision, "is unreadable or incomplete"
            hint = f"remove {inside} and allow the download"
        # NumPy warns of CIFAR's pickles of 2009, and tarfile of archives whose md5 torchvision has checked.
        with explained(f"{spec.name} {what}", str(place), hint), warnings.catch_warnings(action="ignore"):
            place.mkdir(parents=True, exist_ok=True)
            # torchvision takes a second to import, and most layouts do not need it.
            part = make or getattr(torchvision().datasets, dataset)
            parts = [_arrays(part(place, train=one, download=download)) for one in (True, False)]
        return Arrays(*parts[0], *parts[1], where=str(place))

    return Source(spec, load)


def _arrays(part: Any) -> tuple[Pixels, Ints]:
    """Images and labels of a torchvision dataset: (N, H, W) if grey, (N, H, W, C) if coloured."""
    x = torch.as_tensor(part.data).numpy()  # a tensor in MNIST, an array in CIFAR
    x = x[:, None] if x.ndim == len("NHW") else x.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(x, dtype=np.uint8), torch.as_tensor(part.targets).to(torch.int64).numpy()


def unpacked(
    spec: Spec,
    read: Callable[[Path], Arrays],
    *,
    below: Sequence[str],
    parts: Sequence[str],
    recipe: str,
    users: Labels | None = None,
) -> Source:
    """A dataset in one layout, which its user unpacks in the data folder or in a folder of it.

    This may have the names ``below``; ``parts`` have to be in it, and ``recipe`` tells how to get them.
    """

    def load(folder: Path | None, *, download: bool) -> Arrays:  # noqa: ARG001 - archives of hundreds of MB
        places = _places(folder, below)
        root = next((one for one in places if all((one / part).exists() for part in parts)), None)
        if root is None:
            raise _absent(spec.name, places, recipe)
        return replace(read(root), where=str(root))

    return Source(spec, load, users=users)


def _places(folder: Path | None, below: Sequence[str]) -> list[Path]:
    """Where a dataset is looked for: the data folder first, then its folders of some names."""
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
