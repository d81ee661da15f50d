"""What a model infers from images: the classes it finds likeliest."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rich.console import RenderableType

from edgefl.core.units import show_share
from edgefl.show.tables import MISSING, Fitted


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
    columns: dict[str, Callable[[ImageClasses], str]] = {
        "image": lambda image: str(Path(image.file).absolute().relative_to(above)),
        "class": lambda image: image.classes[0].name,
        "probability": lambda image: show_share(image.classes[0].probability, 1),
        "next": lambda image: (
            ", ".join(f"{name} {show_share(share, 1)}" for name, share in image.classes[1:]) or MISSING
        ),
        "changed": lambda image: image.changes or MISSING,
    }
    return Fitted(results.images, columns, wraps=("class", "next", "changed"))
