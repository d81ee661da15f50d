"""Classifies image files with an exported model."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgefl.compute.onnx_runtime import run, session
from edgefl.core.errors import DataError, UserError
from edgefl.data.images import SUFFIXES, decoded, header
from edgefl.export.model import ImageMetadata, image_metadata, read_model
from edgefl.show.onnx import ClassProbability, ImageClasses, Inference

Array = NDArray[Any]

_TYPES = {"tensor(uint8)": np.uint8, "tensor(float)": np.float32, "tensor(float16)": np.float16}


@dataclass(frozen=True)
class Picture:
    """An image as a model takes it, (C, H, W) uint8, and what was changed in the file's; empty if nothing."""

    pixels: NDArray[np.uint8]
    changes: str


def infer(path: Path, images: Sequence[Path], top: int = 3) -> Inference:
    """Runs a model on image files.

    Args:
        path: an ONNX file of ``edgefl export``.
        images: PNG, JPEG or other files that Pillow reads, and folders of such files at any depth.
        top: how many classes to return for each.

    Raises:
        UserError: a file is missing, damaged or not an image, edgefl did not export the model, or its
            output for an image is not one finite number a class.
    """
    known = image_metadata(read_model(path))
    running = session(str(path))
    files = [file for image in images for file in (_below(image) if image.is_dir() else [image])]
    taken = [picture(file, known.shape) for file in files]
    rows = []
    for file, one in zip(files, taken, strict=True):
        logits = _logits(running, known, one.pixels, str(path))
        if not np.isfinite(logits).all():
            raise UserError(
                f"the model's output for {file} is not finite",
                where=str(path),
                hint="the file is damaged, or training diverged; export it again",
            )
        rows.append(ImageClasses(str(file), one.changes, _classes(logits, known.class_names, top)))
    return Inference(str(path), known.shape, rows)


def _below(folder: Path) -> list[Path]:
    """The images in a folder, hidden ones left out.

    Raises:
        DataError: there are none.
    """
    found = sorted(file for file in folder.rglob("[!.]*") if file.suffix.lower() in SUFFIXES)
    if not found:
        raise DataError("there are no images in the folder", where=str(folder))
    return found


def picture(file: Path, shape: tuple[int, int, int]) -> Picture:
    """Reads an image as training does: upright, 8-bit grey or RGB of a shape.

    Raises:
        DataError: the file is missing, or no image that can be read so.
    """
    channels, height, width = shape
    was, *size = header(file, str(file))
    pixels = decoded([(str(file), file)], 1, shape, fit=True)[0]
    mode = "L" if channels == 1 else "RGB"
    changes = [f"{was} to {mode}"] if was != mode else []
    if size != [height, width]:
        changes.append(f"{size[1]} x {size[0]} to {width} x {height}")
    return Picture(np.ascontiguousarray(pixels), ", ".join(changes))


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
