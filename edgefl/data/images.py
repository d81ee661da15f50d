"""Encoded images turned into arrays of pixels of one shape."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgefl.core.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

Pixels: TypeAlias = NDArray[np.uint8]

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm"})
"""Of the files that are taken for images, in lower case."""

# JPEG decodes faster to 1/2, 1/4 or 1/8 of its size; at twice the size that is needed, nothing is lost.
_DRAFT = 2

Encoded: TypeAlias = tuple[str, bytes | Path]
"""An image's name for messages, and its content or file."""


@contextmanager
def explained(what: str, where: str, hint: str = "") -> Iterator[None]:
    """Turns any error that a library raises on a bad file into a ``DataError`` that begins with ``what``."""
    try:
        yield
    except (DataError, MemoryError):
        raise
    except Exception as error:
        detail = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{what}: {detail}", where=where, hint=hint) from error


def decoded(images: Iterable[Encoded], count: int, shape: tuple[int, int, int], *, fit: bool) -> Pixels:
    """``count`` images as (N, C, H, W), a pixel's channels side by side in memory.

    One after another: for small images PIL spends most of its time in Python, reading headers, and threads
    would only wait for each other.

    Args:
        images: are made grey or coloured as the channels ask.
        count: how many there are.
        shape: (channels, height, width) of each.
        fit: whether they are turned upright and resized, too; if not, one of another size is an error.

    Raises:
        DataError: an image cannot be decoded or does not fit, or all of them would not fit in memory.
    """
    channels, height, width = shape
    try:
        pixels = np.empty((count, height, width, channels), dtype=np.uint8)
    except MemoryError as error:
        raise DataError(str(error), hint="choose a smaller size, or fewer images") from None
    with warnings.catch_warnings(action="ignore"):  # of metadata that nothing reads
        for place, (name, source) in enumerate(images):
            with _opened(source, name) as image:
                pixels[place] = _pixels(image, name, shape, fit=fit)
    return pixels.transpose(0, 3, 1, 2)


def header(source: bytes | Path, name: str) -> tuple[str, int, int]:
    """PIL's mode of an image, and its height and width as it is to be shown.

    Raises:
        DataError: it is no image.
    """
    with warnings.catch_warnings(action="ignore"), _opened(source, name) as image:
        _turn(image)
        return image.mode, image.height, image.width


def _turn(image: Image.Image) -> None:
    """Turns an image upright."""
    from PIL import ImageOps

    with suppress(Exception):  # of Exif that cannot be read; pixels that cannot are met by who needs them
        ImageOps.exif_transpose(image, in_place=True)


@contextmanager
def _opened(source: bytes | Path, name: str) -> Iterator[Image.Image]:
    """An image whose header is read.

    Raises:
        DataError: it is none, too large or an animation, or what is done with it fails.
    """
    from PIL import Image

    file = BytesIO(source) if isinstance(source, bytes) else source
    with explained("an image is unreadable", name), Image.open(file) as image:
        frames = getattr(image, "n_frames", 1)
        # MPO, of many cameras, holds one photograph and previews of it.
        if frames > 1 and image.format != "MPO":
            raise DataError(f"an image is an animation or a document of {frames} frames", where=name)
        yield image


def _pixels(image: Image.Image, name: str, shape: tuple[int, int, int], *, fit: bool) -> Pixels:
    """(H, W, C); resized by PIL's antialiasing bilinear filter.

    Transparency is dropped; 16-bit grey keeps its upper byte.
    """
    from PIL import Image

    channels, height, width = shape
    if fit:
        most = _DRAFT * max(height, width)
        image.draft(None, (most, most))
        _turn(image)
    if image.mode in {"I", "F"}:
        what = f"an image's pixels are of mode {image.mode}, whose range is not known"
        raise DataError(what, where=name, hint="save it as an 8-bit PNG")
    if image.mode.startswith("I;16"):
        # PIL itself would cut off everything above 255.
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    made = image.convert("L" if channels == 1 else "RGB")
    if fit:
        made = made.resize((width, height), Image.Resampling.BILINEAR)
    if made.size != (width, height):
        what = f"an image has shape {(channels, made.height, made.width)}, not {shape}"
        raise DataError(what, where=name)
    return np.asarray(made).reshape(height, width, channels)
