"""A dataset: its facts, which need no files, what reads its files, and their content."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeAlias

import numpy as np
import pydantic.dataclasses
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt

from edgefl.core.arrays import Ints
from edgefl.core.errors import DataError
from edgefl.core.user_code import returned

Pixels: TypeAlias = NDArray[np.uint8]
Labels: TypeAlias = tuple[Ints, Ints]
"""Of the training and of the test images, (N,) and (M,) int64."""

_LEVELS = 256


@pydantic.dataclasses.dataclass(frozen=True)
class Spec:
    """A dataset as planning sees it, without its files.

    Attributes:
        shape: one image's (channels, height, width).
        class_names: in the order of labels, which are numbers from 0.
        mean, std: of the training pixels in [0, 1], one per channel; empty if computed when they are read.
        content: a hash of the images and labels if the name does not say which they are, else empty.
        signals: whether samples are float32 signals instead of images of bytes.
    """

    name: str
    shape: tuple[PositiveInt, PositiveInt, PositiveInt]
    train_size: PositiveInt
    test_size: PositiveInt
    class_names: Annotated[tuple[str, ...], Field(min_length=1)]
    mean: tuple[float, ...] = ()
    std: tuple[PositiveFloat, ...] = ()
    content: str = ""
    signals: bool = False

    def __post_init__(self) -> None:
        if not len(self.mean) == len(self.std) in {0, self.shape[0]}:
            raise ValueError("mean and std need a number for each channel, or both none, to be computed")

    @property
    def classes(self) -> int:
        return len(self.class_names)

    @property
    def dtype(self) -> type[np.generic]:
        return np.float32 if self.signals else np.uint8


@dataclass(frozen=True)
class Arrays:
    """A dataset's images, or signals, and labels.

    Attributes:
        train_x: (N, C, H, W) uint8; of signals float32, as they were measured.
        train_y: (N,) int64.
        train_users: (N,) int64, whose each sample is, from 0; None where nobody's.
        mean, std: see ``Spec``; empty if they are not known.
        content: a hash of all samples and labels if their dataset's name does not say which they are.
        where: what they were read of, for messages.
    """

    train_x: Pixels
    train_y: Ints
    test_x: Pixels
    test_y: Ints
    train_users: Ints | None = None
    test_users: Ints | None = None
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    content: str = ""
    where: str = ""


@dataclass(frozen=True)
class Source:
    """A dataset.

    Attributes:
        spec: what is known without reading images.
        load: (folder, download=...) -> its images: ``folder`` is the data folder, or None for the default;
            ``download`` says whether missing files may be downloaded.
        where: what describes it, for messages; by default its module's file.
        labels: in the order of ``load``'s, if they are known without reading images.
        embedded: whether the images come with a package, and so are the same everywhere.
        users: whose the samples are, in the order of ``labels``; None if nobody's. Where ``load`` tells, this
            is what is assumed without the files.
    """

    spec: Spec
    load: Callable[..., Arrays]
    where: str = ""
    labels: Labels | None = None
    embedded: bool = False
    users: Labels | None = None

    def facts(self) -> Spec:
        """``spec`` before images are read: a mean and a deviation that are not known yet are 0 and 1."""
        if self.spec.mean:
            return self.spec
        channels = self.spec.shape[0]
        return replace(self.spec, mean=(0.0,) * channels, std=(1.0,) * channels)

    def read(self, folder: Path | None, *, download: bool) -> tuple[Spec, Arrays]:
        """The images, and the spec with everything that is computed of them; see ``load``.

        A pixel's channels lie side by side in memory, which suits convolutions. A ``DataError`` is raised
        where files are missing or unreadable, or do not fit the spec.
        """
        loaded = self.load(folder, download=download)
        arrays = returned(loaded, Arrays, self.load, "edgefl.data.Arrays", DataError)
        where = arrays.where or self.where
        _check(self.spec, "training", arrays.train_x, arrays.train_y, arrays.train_users, where)
        _check(self.spec, "test", arrays.test_x, arrays.test_y, arrays.test_users, where)
        spec = replace(self.spec, content=arrays.content or self.spec.content)
        if not spec.mean:
            mean, std = (arrays.mean, arrays.std) if arrays.mean else moments(arrays.train_x)
            spec = replace(spec, mean=mean, std=std)
        train_x, test_x = (
            np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
            for x in (arrays.train_x, arrays.test_x)
        )
        return spec, replace(arrays, train_x=train_x, test_x=test_x)


def _check(spec: Spec, part: str, x: Pixels, y: Ints, users: Ints | None, where: str) -> None:
    """Checks that images and labels, one for each, have the spec's shape, type and classes."""
    what, hint, classes = "", "", np.unique(y)
    if x.dtype != spec.dtype or y.dtype != np.dtype(np.int64):
        what = f"images are {x.dtype} and the labels {y.dtype}, not {np.dtype(spec.dtype)} and int64"
        hint = "the Spec of signals, which are float32, has signals=True"
    elif x.dtype == np.float32 and not np.isfinite(x).all():
        what = "signals have values that are not finite"
    elif len(x) != len(y) or not len(x):
        what = f"files hold {len(x)} images and {len(y)} labels"
    elif x.shape[1:] != spec.shape:
        what = f"images have shape {x.shape[1:]}, not {spec.shape}"
    elif (
        classes[0] < 0 or classes[-1] >= spec.classes or (part == "training" and len(classes) < spec.classes)
    ):
        what = (
            f"labels have {len(classes)} classes, from {classes[0]} to {classes[-1]}; {spec.name} has "
            f"{spec.classes}, from 0 to {spec.classes - 1}"
        )
        hint = "are these files of another dataset?"
    elif users is not None and (len(users) != len(x) or users.min() < 0):
        what = f"samples need {len(x)} users, from 0; there are {len(users)}, from {users.min(initial=0)}"
    if what:
        raise DataError(f"{spec.name}'s {part} {what}", where=where, hint=hint)


def moments(x: Pixels) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of each channel of (N, C, H, W), with pixels, but not signals, scaled to [0, 1].

    A channel whose pixels are all alike has the deviation 1, by which images can be divided.
    """
    if x.dtype != np.uint8:
        axes = (0, 2, 3)
        mean, std = x.mean(axes, dtype=np.float64), x.std(axes, dtype=np.float64)
        return tuple(mean.tolist()), tuple(np.where(std > 0, std, 1.0).tolist())
    levels = np.arange(_LEVELS) / (_LEVELS - 1)
    # Counting takes eight times a part's memory.
    parts = np.array_split(x, max(1, -(-x.size // 10**7)))
    means, deviations = [], []
    for channel in range(x.shape[1]):
        counts = np.sum([np.bincount(part[:, channel].ravel(), minlength=_LEVELS) for part in parts], axis=0)
        shares = counts / max(1, counts.sum())
        means.append(float(shares @ levels))
        deviations.append(float(np.sqrt(shares @ (levels - means[-1]) ** 2)) or 1.0)
    return tuple(means), tuple(deviations)


def evenly(samples: int, users: int) -> Ints:
    """Whose each of so many samples is if all users have as many, one after another."""
    return np.arange(samples) * users // samples


def stratified(labels: Ints, share: float, rng: np.random.Generator, *, least: int = 0) -> tuple[Ints, Ints]:
    """The indices of ``labels`` in two, each sorted; the second part has ``share`` of each class, rounded.

    Both have ``least`` of each, whatever the share; a class has twice as many.
    """
    held = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        count = min(max(round(share * len(members)), least), len(members) - least)
        held[rng.permutation(members)[:count]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)
