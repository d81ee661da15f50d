"""Encoded images turned into arrays of pixels of one shape."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import psutil
from numpy.typing import NDArray

from edgefl.core.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

Pixels: TypeAlias = NDArray[np.uint8]

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm"})
"""Of the files that are taken for images, in lower case."""

# More than any camera's image; decoded, it takes 300 MB. Larger ones are most likely made to fill memory.
MOST_PIXELS = 100_000_000
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

    def facts(self) -> list[Any]:
        """What images depend on, as plain data."""
        return [*self.shape, self.fitted, self.resized]


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
    with warnings.catch_warnings():
        # PIL warns of large images, which have a limit here, and of metadata that nothing reads.
        warnings.simplefilter("ignore")
        for place, (name, source) in enumerate(images):
            with explained("an image is unreadable", name):
                pixels[place] = _pixels(source, name, form)
    return pixels.transpose(0, 3, 1, 2)


def files_decoded(files: Sequence[Path], form: Form) -> Pixels:
    """The images of files; see ``decoded``."""
    return decoded(((str(path), path) for path in files), len(files), form)


class Header(NamedTuple):
    """What an image's file says of it: PIL's mode, and its size as it is to be shown."""

    mode: str
    height: int
    width: int


def header(source: bytes | Path, name: str) -> Header:
    """An image's header.

    Raises:
        DataError: it is no image.
    """
    with warnings.catch_warnings(), explained("an image is unreadable", name):
        warnings.simplefilter("ignore")
        with _opened(source, name) as image:
            width, height = image.size[::-1] if _sideways(image) else image.size
            return Header(image.mode, height, width)


_TURNED = (5, 6, 7, 8)
"""Exif's orientations in which width and height change places."""


def _sideways(image: Image.Image) -> bool:
    """Whether width and height change places as the image is turned upright; of TIFFs, PIL has done so."""
    from PIL import ExifTags

    with suppress(Exception):
        return image.format != "TIFF" and image.getexif().get(ExifTags.Base.Orientation) in _TURNED
    return False


def _opened(source: bytes | Path, name: str) -> Image.Image:
    """An image whose header is read and sound.

    Raises:
        DataError: it is too large or an animation.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        image = Image.open(BytesIO(source) if isinstance(source, bytes) else source)
    except UnidentifiedImageError as error:
        raise DataError("this is not an image, or of an unknown format", where=name) from error
    except Image.DecompressionBombError as error:
        raise DataError(f"an image has too many pixels: {error}", where=name) from error
    if image.width * image.height > MOST_PIXELS:
        image.close()
        raise DataError(
            f"an image has {image.width} x {image.height} pixels; the most is {MOST_PIXELS // 10**6} million",
            where=name,
            hint="scale it down",
        )
    # MPO, of many cameras, holds one photograph and previews of it.
    if getattr(image, "n_frames", 1) > 1 and image.format != "MPO":
        frames = image.n_frames  # type: ignore[attr-defined]
        image.close()
        raise DataError(f"an image is an animation or a document of {frames} frames", where=name)
    return image


def _pixels(source: bytes | Path, name: str, form: Form) -> Pixels:
    """(H, W, C) uint8."""
    with _opened(source, name) as image:
        if form.fitted:
            return _fitted(image, name, form)
        mode = "L" if image.mode in _GREY else "RGB"
        found = np.asarray(_converted(image, mode, name))
    x = found[:, :, None] if mode == "L" else found
    height, width, channels = x.shape
    if (channels, height, width) != form.shape:
        raise DataError(
            f"an image has shape {(channels, height, width)}, {form.whose}'s have {form.shape}", where=name
        )
    return x


def _fitted(image: Image.Image, name: str, form: Form) -> Pixels:
    """The image upright, in the shape's channels, resized by PIL's antialiasing bilinear filter."""
    from PIL import Image, ImageOps

    channels, height, width = form.shape
    most = _DRAFT * max(height, width)
    if form.resized:
        image.draft(None, (most, most))
    with suppress(Exception):  # of Exif that cannot be read; pixels that cannot are met below
        ImageOps.exif_transpose(image, in_place=True)
    sized = _converted(image, "L" if channels == 1 else "RGB", name)
    if sized.size != (width, height):
        if not form.resized:
            raise DataError(
                f"an image has {sized.height} x {sized.width} pixels, the first one has {height} x {width}",
                where=name,
                hint="set task.dataset.size, to which all images are resized",
            )
        sized = sized.resize((width, height), Image.Resampling.BILINEAR)
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
