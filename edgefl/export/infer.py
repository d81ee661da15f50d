"""Classifies image files with an exported model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgefl.compute.onnx_runtime import session
from edgefl.core.errors import UserError
from edgefl.export.model import ModelFile, read_model
from edgefl.report.inference import ClassProbability, ImageClasses, Inference

Array = NDArray[Any]

_NEEDED = ("class_names", "shape", "mean", "std")
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
        UserError: a file is missing, damaged or not an image, or edgefl did not export the model.
    """
    model = read_model(path)
    shape, names = _facts(model)
    running = session(str(path))
    taken = [picture(image, shape) for image in images]
    rows = [
        ImageClasses(str(file), one.changes, _classes(_logits(running, model, one.pixels), names, top))
        for file, one in zip(images, taken, strict=True)
    ]
    return Inference(str(path), shape, rows)


def _facts(model: ModelFile) -> tuple[tuple[int, int, int], list[str]]:
    """The model's (channels, height, width) and its class names.

    Raises:
        UserError: the file's metadata lacks them.
    """
    missing = [key for key in _NEEDED if key not in model.facts]
    shape, names = model.facts.get("shape"), model.facts.get("class_names")
    failure = f"was not exported by edgefl: its metadata lacks {', '.join(missing)}"
    if not missing:
        match shape, names:
            case [channels, height, width], list():
                return (channels, height, width), [str(name) for name in names]
        failure = f"does not classify images: its metadata has shape {shape}"
    raise UserError(
        f"{model.path.name} {failure}", where=str(model.path), hint="use a file that edgefl export wrote"
    )


def picture(file: Path, shape: tuple[int, int, int]) -> Picture:
    """Reads an image as 8-bit grey or RGB of a shape.

    Raises:
        UserError: the file is missing or not an image.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    channels, height, width = shape
    mode = {1: "L", 3: "RGB"}.get(channels)
    if mode is None:
        raise UserError(f"the model takes {channels} channels; images have 1 or 3", where=str(file))
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
        image = _eight_bits(image).convert(mode)
    if image.size != (width, height):
        changes.append(f"{image.size[0]} x {image.size[1]} to {width} x {height}")
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    pixels = np.asarray(image, dtype=np.uint8).reshape(height, width, channels)
    return Picture(np.ascontiguousarray(pixels.transpose(2, 0, 1)), ", ".join(changes))


def _eight_bits(image: Any) -> Any:
    """An image with values up to 255; Pillow would clip 16-bit grey there instead of scaling it."""
    from PIL import Image

    if not image.mode.startswith("I"):
        return image
    values = np.asarray(image).astype(np.int64)
    return Image.fromarray(
        (values >> 8 if values.max() > np.iinfo(np.uint8).max else values).astype(np.uint8)
    )


def _logits(running: Any, model: ModelFile, pixels: NDArray[np.uint8]) -> Array:
    """One image's logits.

    Raises:
        UserError: the model does not take images, or fails on this one.
    """
    given = running.get_inputs()[0]
    dtype = _TYPES.get(given.type)
    if dtype is None:
        raise UserError(f"the model takes {given.type}, not images", where=str(model.path))
    x: Array = pixels[None]
    if dtype is not np.uint8:
        mean, std = (np.array(model.facts[key]).reshape(1, -1, 1, 1) for key in ("mean", "std"))
        x = ((x / 255 - mean) / std).astype(dtype)
    try:
        logits: Array = running.run(None, {given.name: x})[0][0]
    except Exception as error:
        # ONNX Runtime's errors have no common base class.
        raise UserError(f"the model fails on an image: {error}", where=str(model.path)) from error
    return logits.astype(np.float64)


def _classes(logits: Array, names: Sequence[str], top: int) -> list[ClassProbability]:
    powers = np.exp(logits - logits.max())
    shares = powers / powers.sum()
    order = np.argsort(-shares, kind="stable")[:top]
    return [
        ClassProbability(names[place] if place < len(names) else str(place), float(shares[place]))
        for place in order
    ]
