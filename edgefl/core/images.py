"""Encoded images turned into arrays of pixels of one shape."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import psutil
from numpy.typing import NDArray

from edgefl.core.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

Pixels: TypeAlias = NDArray[np.uint8]

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm"})
"""Of the files that are taken for images, in lower case."""

_GREY = frozenset({"1", "L", "LA", "La", "I;16", "I;16B", "I;16L"})
_CONVERTIBLE = frozenset({"P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV"})
# JPEG decodes faster to 1/2, 1/4 or 1/8 of its size; at twice the size that is needed, nothing is lost.
_DRAFT = 2

Encoded: TypeAlias = tuple[str, bytes | Path]
"""An image's name for messages, and its content or file."""


@dataclass(frozen=True)
class Form:
    """What images are turned into.

    Attributes:
        shape: (channels, height, width).
        whose: the dataset, for messages.
        fitted: whether grey and colour are converted into each other, and images turned upright.
        resized: whether images are also resized; if not, one of another size is an error.
    """

    shape: tuple[int, int, int]
    whose: str
    fitted: bool = False
    resized: bool = False


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


def decoded(images: Iterable[Encoded], count: int, form: Form) -> Pixels:
    """``count`` images as (N, C, H, W), a pixel's channels side by side in memory.

    One after another: for small images PIL spends most of its time in Python, reading headers, and threads
    would only wait for each other.

    Raises:
        DataError: an image cannot be decoded or does not fit, or all of them would not fit in memory.
    """
    channels, height, width = form.shape
    needed, present = count * channels * height * width, psutil.virtual_memory().total
    if needed > present:
        raise DataError(
            f"{count} images of {form.shape} take {needed / 1e9:.3g} GB, more than this machine's memory of "
            f"{present / 1e9:.3g} GB",
            where=form.whose,
            hint="choose a smaller size, or fewer images",
        )
    pixels = np.empty((count, height, width, channels), dtype=np.uint8)
    with _quiet():
        for place, (name, source) in enumerate(images):
            with _opened(source, name) as image:
                pixels[place] = _pixels(image, name, form)
    return pixels.transpose(0, 3, 1, 2)


def header(source: bytes | Path, name: str) -> tuple[str, int, int]:
    """PIL's mode of an image, and its height and width as it is to be shown.

    Raises:
        DataError: it is no image.
    """
    with _quiet(), _opened(source, name) as image:
        _turn(image)
        return image.mode, image.height, image.width


def _turn(image: Image.Image) -> None:
    """Turns an image upright."""
    from PIL import ImageOps

    with suppress(Exception):  # of Exif that cannot be read; pixels that cannot are met by who needs them
        ImageOps.exif_transpose(image, in_place=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Images that are too large are errors; of metadata that nothing reads, PIL warns."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield


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


def _pixels(image: Image.Image, name: str, form: Form) -> Pixels:
    """(H, W, C) uint8; resized by PIL's antialiasing bilinear filter."""
    from PIL import Image

    channels, height, width = form.shape
    grey = channels == 1 if form.fitted else image.mode in _GREY
    if form.resized:
        most = _DRAFT * max(height, width)
        image.draft(None, (most, most))
    if form.fitted:
        _turn(image)
    sized = _converted(image, "L" if grey else "RGB", name)
    if form.resized and sized.size != (width, height):
        sized = sized.resize((width, height), Image.Resampling.BILINEAR)
    shape = (len(sized.getbands()), sized.height, sized.width)
    if shape != form.shape:
        hint = "set task.dataset.size, to which all images are resized" if form.fitted else ""
        raise DataError(
            f"an image has shape {shape}, {form.whose}'s have {form.shape}", where=name, hint=hint
        )
    return np.asarray(sized).reshape(height, width, channels)


def _converted(image: Image.Image, mode: str, name: str) -> Image.Image:
    """The image in mode L or RGB; transparency is dropped, 16-bit grey keeps its upper byte.

    Raises:
        DataError: its mode has no single reading as such.
    """
    from PIL import Image

    if image.mode == mode:
        return image
    if image.mode.startswith("I;16"):
        # PIL itself would cut off everything above 255.
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    elif image.mode not in _GREY | _CONVERTIBLE:
        raise DataError(
            f"an image's pixels are of mode {image.mode}, which is neither grey nor RGB",
            where=name,
            hint="save it as an 8-bit PNG",
        )
    return image if image.mode == mode else image.convert(mode)
