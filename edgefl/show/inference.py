"""What a model infers from images: the classes it finds likeliest."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import RenderableType

from edgefl.core.units import show_share
from edgefl.show.table import Column, Table


class ClassProbability(NamedTuple):
    """A class by its name, and the probability the model gives it."""

    name: str
    probability: float


@dataclass(frozen=True)
class ImageClasses:
    """One image.

    Attributes:
        file: the image's file.
        changes: what was done to the image to fit the model; empty where nothing was.
        classes: the likeliest classes, the likeliest first.
    """

    file: str
    changes: str
    classes: Sequence[ClassProbability]


@dataclass(frozen=True)
class Inference:
    """A model on images.

    Attributes:
        model: the model's file.
        shape: (channels, height, width) that it takes.
        images: one for each image file.
    """

    model: str
    shape: tuple[int, int, int]
    images: Sequence[ImageClasses]


def inference(results: Inference) -> RenderableType:
    """A table with a row for each image, named below the innermost folder that holds all of them."""
    above = os.path.commonpath([Path(image.file).absolute().parent for image in results.images])
    columns = [
        Column("image", lambda image: Path(image.file).absolute().relative_to(above)),
        Column("class", lambda image: image.classes[0].name, left=True),
        Column("probability", lambda image: image.classes[0].probability, _share),
        Column("next", _others, left=True),
        Column("changed", lambda image: image.changes or None, left=True),
    ]
    return Table(columns, results.images)


def _others(image: ImageClasses) -> str | None:
    return ", ".join(f"{name} {_share(share)}" for name, share in image.classes[1:]) or None


_share = partial(show_share, digits=1)
