"""A dataset's facts, which need no files, and the content of its files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Pixels: TypeAlias = NDArray[np.uint8]


@dataclass(frozen=True)
class Spec:
    """A dataset as planning sees it, without its files.

    Attributes:
        name: as written in scenarios, such as ``fashion-mnist``.
        shape: one image's (channels, height, width).
        classes: how many there are; labels run from 0 to ``classes - 1``.
        train_size: training images.
        test_size: test images.
        class_names: in the order of labels.
        mean: of the training pixels in [0, 1], one per channel.
        std: likewise.
    """

    name: str
    shape: tuple[int, int, int]
    classes: int
    train_size: int
    test_size: int
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]


@dataclass(frozen=True)
class Arrays:
    """A dataset's images and labels.

    Attributes:
        train_x: (N, C, H, W) uint8.
        train_y: (N,) int64.
        test_x: (M, C, H, W) uint8.
        test_y: (M,) int64.
    """

    train_x: Pixels
    train_y: Ints
    test_x: Pixels
    test_y: Ints


def stratified(labels: Ints, share: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Splits indices in two so that the second part holds ``share`` of each class, rounded.

    Returns:
        The kept and the held-out indices, each sorted; together all of them.
    """
    held = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        held[rng.permutation(members)[: round(share * len(members))]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def channels_last(arrays: Arrays) -> Arrays:
    """The same images with a pixel's channels side by side in memory, which suits convolutions."""
    train_x, test_x = (
        np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
        for x in (arrays.train_x, arrays.test_x)
    )
    return replace(arrays, train_x=train_x, test_x=test_x)
