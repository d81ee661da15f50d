"""Classifies image files with an exported model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgefl.compute.onnx_runtime import run, session
from edgefl.core.errors import UserError
from edgefl.export.metadata import ImageMetadata, image_metadata
from edgefl.export.model import read_model
from edgefl.report.inference import ClassProbability, ImageClasses, Inference

Array = NDArray[Any]

_TYPES = {"tensor(uint8)": np.uint8, "tensor(float)": np.float32, "tensor(float16)": np.float16}


@dataclass(frozen=True)
class Picture:
    """An image as a model takes it.

    Attributes:
        pixels: (C, H, W) uint8.
        changes: what was changed in the file's image, as text; empty if nothing.
    """

    pixels: NDArray[np.uint8]
    changes: str


def infer(path: Path, images: Sequence[Path], top: int = 3) -> Inference:
    """Runs a model on image files.

    Args:
        path: an ONNX file of ``edgefl export``.
        images: PNG, JPEG or other files that Pillow reads.
        top: how many classes to return for each.

    Raises:
        UserError: a file is missing, damaged or not an image, edgefl did not export the model, or its
            output for an image is not one finite number a class.
    """
    known = image_metadata(read_model(path))
    running = session(str(path))
    taken = [picture(image, known.shape) for image in images]
    rows = []
    for file, one in zip(images, taken, strict=True):
        logits = _logits(running, known, one.pixels, str(path))
        if not np.isfinite(logits).all():
            raise UserError(
                f"the model's output for {file} is not finite",
                where=str(path),
                hint="the file is damaged, or training diverged; export it again",
            )
        rows.append(ImageClasses(str(file), one.changes, _classes(logits, known.class_names, top)))
    return Inference(str(path), known.shape, rows)


def picture(file: Path, shape: tuple[int, int, int]) -> Picture:
    """Reads an image as 8-bit grey or RGB of a shape.

    Raises:
        UserError: the file is missing or not an image.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    channels, height, width = shape
    mode = {1: "L", 3: "RGB"}[channels]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file) as opened:
                image = ImageOps.exif_transpose(opened)
                image.load()
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise UserError(f"{file} has too many pixels", where=str(file)) from error
    except UnidentifiedImageError as error:
        raise UserError(f"{file} is not an image that Pillow can read", where=str(file)) from error
    except (OSError, SyntaxError, ValueError) as error:
        # Damaged files raise any of these.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UserError(f"cannot read the image {file}: {reason}", where=str(file)) from error
    if image.mode == "F":
        raise UserError(
            f"{file} holds floating-point values, whose range is unknown",
            where=str(file),
            hint="save it with 8 or 16 bits per channel",
        )
    changes = []
    if image.mode != mode:
        changes.append(f"{image.mode} to {mode}")
        image = _converted(image, mode, file)
    if image.size != (width, height):
        changes.append(f"{image.size[0]} x {image.size[1]} to {width} x {height}")
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    pixels = np.asarray(image, dtype=np.uint8).reshape(height, width, channels)
    return Picture(np.ascontiguousarray(pixels.transpose(2, 0, 1)), ", ".join(changes))


def _converted(image: Any, mode: str, file: Path) -> Any:
    """An image in grey or RGB.

    Raises:
        UserError: Pillow knows no way from its colours to those.
    """
    try:
        return _eight_bits(image).convert(mode)
    except ValueError as error:
        raise UserError(
            f"{file} holds {image.mode} colours, which Pillow cannot convert to {mode}",
            where=str(file),
            hint="save it in grey or RGB",
        ) from error


def _eight_bits(image: Any) -> Any:
    """An image with values up to 255; Pillow would clip 16-bit grey there instead of scaling it."""
    from PIL import Image

    if not image.mode.startswith("I"):
        return image
    values = np.asarray(image).astype(np.int64)
    return Image.fromarray(
        (values >> 8 if values.max() > np.iinfo(np.uint8).max else values).astype(np.uint8)
    )


def _logits(running: Any, known: ImageMetadata, pixels: NDArray[np.uint8], where: str) -> Array:
    """One image's logits, one a class.

    Raises:
        UserError: the model does not take images, fails on this one, or gives something else.
    """
    given, *others = running.get_inputs() or [None]
    dtype = None if others or given is None else _TYPES.get(given.type)
    if dtype is None:
        takes = ", ".join(one.type for one in (given, *others) if one is not None) or "nothing"
        raise UserError(f"the model takes {takes}, not images", where=where)
    x: Array = pixels[None]
    if dtype is not np.uint8:
        mean, std = (np.array(values).reshape(1, -1, 1, 1) for values in (known.mean, known.std))
        x = ((x / 255 - mean) / std).astype(dtype)
    logits = run(running, {given.name: x}, where)[0]
    wanted = (1, len(known.class_names))
    if not isinstance(logits, np.ndarray) or logits.dtype.kind not in "fiu" or logits.shape != wanted:
        shape = f"values of shape {logits.shape}" if isinstance(logits, np.ndarray) else "no tensor"
        raise UserError(
            f"the model gives {shape} for an image; its metadata names {wanted[1]} classes", where=where
        )
    found: Array = logits[0].astype(np.float64)
    return found


def _classes(logits: Array, names: Sequence[str], top: int) -> list[ClassProbability]:
    powers = np.exp(logits - logits.max())
    shares = powers / powers.sum()
    order = np.argsort(-shares, kind="stable")[:top]
    return [ClassProbability(names[place], float(shares[place])) for place in order]
