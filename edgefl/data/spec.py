"""A dataset's facts, which need no files, and the content of its files."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pydantic.dataclasses
from pydantic import PositiveFloat, PositiveInt

from edgefl.core.arrays import Ints
from edgefl.data.images import Pixels

_LEVELS = 256
_COUNTED_AT_ONCE = 10**7


@pydantic.dataclasses.dataclass(frozen=True)
class Spec:
    """A dataset as planning sees it, without its files.

    Attributes:
        name: as written in scenarios, such as ``fashion-mnist``.
        shape: one image's (channels, height, width).
        classes: how many there are; labels run from 0 to ``classes - 1``.
        train_size: training images.
        test_size: test images.
        class_names: in the order of labels.
        mean: of the training pixels in [0, 1], one per channel; empty if it is computed when they are read.
        std: likewise.
        content: a hash of the images and labels if the name does not say which they are, else empty.
        signals: whether samples are float32 signals instead of images of bytes.
    """

    name: str
    shape: tuple[PositiveInt, PositiveInt, PositiveInt]
    classes: PositiveInt
    train_size: PositiveInt
    test_size: PositiveInt
    class_names: tuple[str, ...]
    mean: tuple[float, ...] = ()
    std: tuple[PositiveFloat, ...] = ()
    content: str = ""
    signals: bool = False

    def __post_init__(self) -> None:
        if len(self.class_names) != self.classes:
            raise ValueError(f"there are {len(self.class_names)} class_names and {self.classes} classes")
        if not len(self.mean) == len(self.std) in {0, self.shape[0]}:
            raise ValueError("mean and std need a number for each channel, or both none, to be computed")

    @property
    def dtype(self) -> type[np.generic]:
        """The type of samples in memory."""
        return np.float32 if self.signals else np.uint8


@dataclass(frozen=True)
class Arrays:
    """A dataset's images, or signals, and labels.

    Attributes:
        train_x: (N, C, H, W) uint8; of signals float32, as they were measured.
        train_y: (N,) int64.
        test_x: (M, C, H, W), of the same type.
        test_y: (M,) int64.
        train_users: (N,) int64, whose each sample is, from 0; None where nobody's.
        test_users: (M,) int64 likewise.
        mean: see ``Spec``; empty if it is not known.
        std: likewise.
        content: a hash of all samples and labels if their dataset's name does not say which they are.
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


def moments(x: Pixels) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel of (N, C, H, W), with pixels scaled to [0, 1].

    Signals are not scaled. A channel whose pixels are all alike has the deviation 1, by which images can be
    divided.
    """
    if x.dtype != np.uint8:
        axes = (0, 2, 3)
        spread = x.std(axes, dtype=np.float64)
        mean = x.mean(axes, dtype=np.float64)
        return tuple(mean.tolist()), tuple(np.where(spread > 0, spread, 1.0).tolist())
    levels = np.arange(_LEVELS) / (_LEVELS - 1)
    means, deviations = [], []
    for channel in range(x.shape[1]):
        counts = sum(np.bincount(part[:, channel].ravel(), minlength=_LEVELS) for part in _parts(x))
        shares = counts / max(1, np.sum(counts))
        means.append(float(shares @ levels))
        deviations.append(float(np.sqrt(shares @ (levels - means[-1]) ** 2)) or 1.0)
    return tuple(means), tuple(deviations)


def _parts(x: Pixels) -> list[Pixels]:
    """The images in parts of a bounded number of pixels: counting takes eight times a part's memory."""
    return np.array_split(x, max(1, -(-x.size // _COUNTED_AT_ONCE)))


def evenly(samples: int, users: int) -> Ints:
    """Whose each of so many samples is if all users have as many, one after another."""
    return np.arange(samples) * users // samples


def stratified(labels: Ints, share: float, rng: np.random.Generator, *, least: int = 0) -> tuple[Ints, Ints]:
    """Splits indices in two so that the second part holds ``share`` of each class, rounded.

    Args:
        labels: of the samples.
        share: of the second part.
        rng: draws each class's samples.
        least: samples that both parts have of each class, whatever the share; a class has twice as many.

    Returns:
        The kept and the held-out indices, each sorted; together all of them.
    """
    held = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        count = min(max(round(share * len(members)), least), len(members) - least)
        held[rng.permutation(members)[:count]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def channels_last(arrays: Arrays) -> Arrays:
    """The same images with a pixel's channels side by side in memory, which suits convolutions."""
    train_x, test_x = (
        np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
        for x in (arrays.train_x, arrays.test_x)
    )
    return replace(arrays, train_x=train_x, test_x=test_x)
