"""A dataset before its images are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from edgefl.core.arrays import Ints
from edgefl.core.errors import DataError
from edgefl.data.spec import Arrays, Spec, moments

Labels: TypeAlias = tuple[Ints, Ints]
"""Of the training and of the test images, (N,) and (M,) int64."""


@dataclass(frozen=True)
class Source:
    """A dataset.

    Attributes:
        spec: what is known without reading images.
        load: (folder, download=...) -> its images: ``folder`` is that of the known datasets' files, or None
            for the default; ``download`` says whether missing files may be downloaded.
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
        """The images, and the spec with everything that is computed of them.

        Args:
            folder: see ``load``.
            download: likewise.

        Raises:
            DataError: the files are missing or unreadable, or do not fit the spec.
        """
        loaded = self.load(folder, download=download)
        if not isinstance(loaded, Arrays):
            raise DataError(
                f"{self.spec.name}'s load returned {type(loaded).__name__}, not edgefl.data.Arrays",
                where=self.where,
            )
        arrays = checked(self.spec, loaded, self.where)
        spec = replace(self.spec, content=arrays.content or self.spec.content)
        if not spec.mean:
            mean, std = (arrays.mean, arrays.std) if arrays.mean else moments(arrays.train_x)
            spec = replace(spec, mean=mean, std=std)
        return spec, arrays


def checked(spec: Spec, arrays: Arrays, where: str) -> Arrays:
    """``arrays``, if they fit ``spec``.

    Raises:
        DataError: the images have another shape or type, or the labels are not the dataset's classes.
    """
    parts = {
        "training": (arrays.train_x, arrays.train_y, arrays.train_users),
        "test": (arrays.test_x, arrays.test_y, arrays.test_users),
    }
    for part, (x, y, users) in parts.items():
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
            classes[0] < 0
            or classes[-1] >= spec.classes
            or (part == "training" and len(classes) != spec.classes)
        ):
            what = (
                f"labels have {len(classes)} classes, from {classes[0]} to {classes[-1]}; {spec.name} has "
                f"{spec.classes}, from 0 to {spec.classes - 1}"
            )
            hint = "are these files of another dataset?"
        elif users is not None and (len(users) != len(x) or users.min() < 0):
            least = users.min(initial=0)
            what = f"samples need {len(x)} users, from 0; there are {len(users)}, from {least}"
        if what:
            raise DataError(f"{spec.name}'s {part} {what}", where=where, hint=hint)
    return arrays
