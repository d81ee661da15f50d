"""Labelled images that are not decoded yet, and datasets of a user's own."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress, islice
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from edgefl.core.arrays import Ints
from edgefl.core.errors import DataError
from edgefl.core.notes import note
from edgefl.core.units import show_count
from edgefl.data.dataset import Arrays, Source, Spec, stratified
from edgefl.data.images import Encoded, decoded, decoded_once, header
from edgefl.data.sources import Dataset

# Of so many images of a part, the sizes are looked up where none is given.
LOOKED_AT = 256
# Independent of a run's seed: every run has the same test images. Any number would do.
_SPLIT_SEED = 2718
_TEST_SHARE = 0.2

_Side = Annotated[int, Field(strict=True, gt=0, le=1024)]


@dataclass(frozen=True)
class Pictures:
    """N labelled images.

    Attributes:
        files: that they are in: N, or each has several.
        labels: (N,) int64.
        encoded: the images, in the order of labels.
        names: of the classes; empty if the files do not say them.
        users: whose each is, (N,), by name; None if that is not asked for.
    """

    files: Sequence[Path]
    labels: Ints
    encoded: Callable[[], Iterable[Encoded]]
    names: tuple[str, ...] = ()
    users: NDArray[np.str_] | None = None

    def of(self, chosen: Ints) -> "Pictures":
        """Some of them, by sorted indices."""
        mask = np.isin(np.arange(len(self.labels)), chosen)
        return replace(
            self,
            labels=self.labels[chosen],
            encoded=lambda: compress(self.encoded(), mask),
            users=None if self.users is None else self.users[chosen],
        )

    def sizes(self) -> set[tuple[int, int]]:
        """The heights and widths of some, of all classes; where files hold several, of the first."""
        step = -(-len(self.labels) // LOOKED_AT) if len(self.files) == len(self.labels) else 1
        some = islice(self.encoded(), 0, LOOKED_AT * step, max(1, step))
        return {header(image, name)[1:] for name, image in some}


def of_files(files: Sequence[Path], labels: Ints) -> Pictures:
    """Images of which each has a file."""
    return Pictures(files, labels, lambda: ((str(path), path) for path in files))


def decoded_pictures(train: Pictures, test: Pictures, shape: tuple[int, int, int], *, fit: bool) -> Arrays:
    """Both parts in one shape, from the cache if they were decoded before; see ``edgefl.data.images``."""

    def decode() -> Arrays:
        train_x, test_x = (
            decoded(part.encoded(), len(part.labels), shape, fit=fit) for part in (train, test)
        )
        return Arrays(train_x, train.labels, test_x, test.labels)

    labels = [hashlib.sha256(part.labels.tobytes()).hexdigest() for part in (train, test)]
    how = {"shape": shape, "fit": fit, "labels": labels}
    return decoded_once(list(dict.fromkeys([*train.files, *test.files])), how, decode)


def _absolute(text: str) -> str:
    return str(Path(os.path.expanduser(text)).absolute())  # noqa: PTH111 - a Path fails without such a user


class OwnImages(Dataset):
    """Where the images are, and what they are turned into."""

    path: Annotated[
        str,
        Field(min_length=1, description="the folder; relative paths begin at the current directory"),
        AfterValidator(_absolute),
    ]
    size: Annotated[
        _Side | tuple[_Side, _Side] | None,
        Field(description="height and width to resize to, or one number; null: their own, 32 if they differ"),
    ] = None
    channels: Annotated[Literal[1, 3], Field(description="1 for grey, 3 for colour")] = 3

    def root(self) -> Path:
        """The folder; raises a ``DataError`` where there is none."""
        if not os.path.isdir(self.path):  # noqa: PTH112 - a Path fails on a name that is too long
            raise DataError(
                f"there is no folder {Path(self.path).name!r}",
                where=self.path,
                hint="task.dataset.path must name a folder; relative paths begin at the current directory",
            )
        return Path(self.path)

    def source(self, names: tuple[str, ...], train: Pictures, test: Pictures | None = None) -> Source:
        """The dataset, named after its folder, of classes of these names.

        Without images to ``test`` on, a share of each class's is taken, the same ones for every seed.
        """
        if len(names) < 2:  # noqa: PLR2004 - the least that can be told apart
            raise DataError(f"there is only the class {names[0]!r}; at least 2 are needed", where=self.path)
        counts = np.bincount(train.labels, minlength=len(names))
        if counts.min() < (2 if test is None else 1):
            has = f"class {names[counts.argmin()]!r} has {show_count(int(counts.min()), 'image')} to train on"
            raise DataError(f"{has}; at least 2 are needed, one of them for testing", where=self.path)
        name = Path(self.path).name or "images"
        shape = self.channels, *self._size([train] if test is None else [train, test], name)
        if test is None:
            rng = np.random.default_rng(_SPLIT_SEED)
            kept, held = stratified(train.labels, _TEST_SHARE, rng, least=1)
            train, test = train.of(kept), train.of(held)
        if not len(test.labels):
            raise DataError("there are no test images", where=self.path)
        known = [names, train.labels.tolist(), test.labels.tolist()]
        content = hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]
        sizes = len(train.labels), len(test.labels)
        spec = Spec(name, shape, *sizes, names, content=content)
        users = None
        if train.users is not None and test.users is not None:
            # Numbered in the order of their names.
            _, numbers = np.unique(np.concatenate((train.users, test.users)), return_inverse=True)
            users = numbers[: sizes[0]], numbers[sizes[0] :]

        def load(folder: Path | None, *, download: bool) -> Arrays:  # noqa: ARG001 - the folder is a parameter
            return decoded_pictures(train, test, shape, fit=True)

        return Source(spec, load, self.path, labels=(train.labels, test.labels), users=users)

    def _size(self, parts: list[Pictures], name: str) -> tuple[int, int]:
        """The height and width that images are resized to: where none is given, that of some of them."""
        if self.size is not None:
            return (self.size, self.size) if isinstance(self.size, int) else self.size
        size, *others = set(chain.from_iterable(part.sizes() for part in parts))
        if others:
            size = 32, 32
            note(f"{name}: sizes differ, so images become 32 x 32; for others, set task.dataset.size")
        return size
