"""Images in files: turned into arrays of pixels of one shape, once, and datasets of a user's own.

Arrays are kept in the user's cache. An entry is an NPZ file, whose parts have checksums. Its name is a hash
of how the images were decoded and of their files' paths, sizes, inodes and times of change, so a file that
changed has another entry. What is missing, cannot be written or was damaged is decoded again.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from io import BytesIO
from itertools import chain, compress, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from edgefl.core.arrays import Ints
from edgefl.core.errors import DataError, RunError
from edgefl.core.files import cache_folder, replacing
from edgefl.core.notes import note
from edgefl.core.units import show_count
from edgefl.data.dataset import Arrays, Pixels, Source, Spec, moments, stratified
from edgefl.data.sources import Dataset

if TYPE_CHECKING:
    from PIL import Image

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm"})
"""Of the files that are taken for images, in lower case."""

# Of so many images of a part, the sizes are looked up where none is given.
LOOKED_AT = 256

_Side = Annotated[int, Field(strict=True, gt=0, le=1024)]

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


def decoded_once(files: Sequence[Path], how: Mapping[str, Any], decode: Callable[[], Arrays]) -> Arrays:
    """The images of files with their moments and their content's hash, from the cache if decoded before.

    Args:
        files: all that ``decode`` reads, in an order that depends on their names alone.
        how: everything else that its result depends on, as plain data.
    """
    key = json.dumps([list(map(_state, files)), version("pillow"), dict(how)], sort_keys=True)
    entry = cache_folder() / "images" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npz"
    with suppress(Exception), entry.open("rb") as opened, np.load(opened) as kept:
        rows = dict(kept)
        mean, std = (tuple(rows.pop(name).tolist()) for name in ("mean", "std"))
        images = {name: rows.pop(name).transpose(0, 3, 1, 2) for name in ("train_x", "test_x")}
        return Arrays(**images, mean=mean, std=std, content=str(rows.pop("content")), **rows)
    arrays = decode()
    # As they lie in memory and in the entry: images as (N, H, W, C).
    rows = {
        name: np.ascontiguousarray(value.transpose(0, 2, 3, 1) if name.endswith("_x") else value)
        for name, value in vars(arrays).items()
        if isinstance(value, np.ndarray)
    }
    content = hashlib.sha256()
    for name, array in sorted(rows.items()):
        content.update(repr((name, array.shape)).encode())
        content.update(array)
    mean, std = moments(arrays.train_x)
    found = replace(arrays, mean=mean, std=std, content=content.hexdigest()[:32])
    # Without space, or a folder that can be written.
    with suppress(OSError, RunError):
        entry.parent.mkdir(parents=True, exist_ok=True)
        with replacing(entry) as temporary, temporary.open("wb") as file:
            np.savez(file, **rows, mean=mean, std=std, content=found.content)
    return found


def _state(path: Path) -> list[Any]:
    """What tells whether a file is still the same, without reading it.

    The time of an inode's change cannot be set back, as that of its content can.
    """
    with explained(f"cannot read {path.name}", str(path)):
        found = path.stat()
    return [str(path.absolute()), found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def decoded(images: Iterable[Encoded], count: int, shape: tuple[int, int, int], *, fit: bool) -> Pixels:
    """``count`` images as (N, C, H, W), a pixel's channels side by side in memory.

    They are made grey or coloured as the channels ask; transparency is dropped, and 16-bit grey keeps its
    upper byte. With ``fit``, they are turned upright and resized to (channels, height, width), too; without,
    one of another size is an error. One after another: for small images PIL spends most of its time in
    Python, reading headers, and threads would only wait for each other. What cannot be decoded, or would not
    fit in memory, is a ``DataError``.
    """
    channels, height, width = shape
    try:
        pixels = np.empty((count, height, width, channels), dtype=np.uint8)
    except MemoryError as error:
        raise DataError(str(error), hint="choose a smaller size, or fewer images") from None
    for place, (name, source) in enumerate(images):
        with _opened(source, name) as image:
            pixels[place] = _pixels(image, name, shape, fit=fit)
    return pixels.transpose(0, 3, 1, 2)


def header(source: bytes | Path, name: str) -> tuple[str, int, int]:
    """PIL's mode of an image, and its height and width as it is to be shown."""
    with _opened(source, name) as image:
        _turn(image)
        return image.mode, image.height, image.width


@contextmanager
def _opened(source: bytes | Path, name: str) -> "Iterator[Image.Image]":
    """An image whose header is read."""
    from PIL import Image

    file = BytesIO(source) if isinstance(source, bytes) else source
    # PIL warns of metadata that nothing reads.
    quiet = warnings.catch_warnings(action="ignore")
    with quiet, explained("an image is unreadable", name), Image.open(file) as image:
        frames = getattr(image, "n_frames", 1)
        # MPO, of many cameras, holds one photograph and previews of it.
        if frames > 1 and image.format != "MPO":
            raise DataError(f"an image is an animation or a document of {frames} frames", where=name)
        yield image


def _turn(image: "Image.Image") -> None:
    """Turns an image upright."""
    from PIL import ImageOps

    with suppress(Exception):  # of Exif that cannot be read; pixels that cannot are met by who needs them
        ImageOps.exif_transpose(image, in_place=True)


def _pixels(image: "Image.Image", name: str, shape: tuple[int, int, int], *, fit: bool) -> Pixels:
    """(H, W, C); resized by PIL's antialiasing bilinear filter."""
    from PIL import Image

    channels, height, width = shape
    if fit:
        # JPEG decodes faster to 1/2, 1/4 or 1/8 of its size; at twice what is needed, nothing is lost.
        most = 2 * max(height, width)
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


@dataclass(frozen=True)
class Pictures:
    """N labelled images.

    Attributes:
        files: that they are in: N, or each has several.
        labels: (N,) int64.
        encoded: the images, in the order of labels.
        names: of the classes; empty if the files do not say them.
        users: whose each is, (N,), by name; None if that is not asked for.
    """

    files: Sequence[Path]
    labels: Ints
    encoded: Callable[[], Iterable[Encoded]]
    names: tuple[str, ...] = ()
    users: NDArray[np.str_] | None = None

    def of(self, chosen: Ints) -> "Pictures":
        """Some of them, by sorted indices."""
        mask = np.isin(np.arange(len(self.labels)), chosen)
        return replace(
            self,
            labels=self.labels[chosen],
            encoded=lambda: compress(self.encoded(), mask),
            users=None if self.users is None else self.users[chosen],
        )

    def sizes(self) -> set[tuple[int, int]]:
        """The heights and widths of some, of all classes; where files hold several, of the first."""
        step = -(-len(self.labels) // LOOKED_AT) if len(self.files) == len(self.labels) else 1
        some = islice(self.encoded(), 0, LOOKED_AT * step, max(1, step))
        return {header(image, name)[1:] for name, image in some}


def of_files(files: Sequence[Path], labels: Ints) -> Pictures:
    """Images of which each has a file."""
    return Pictures(files, labels, lambda: ((str(path), path) for path in files))


def decoded_pictures(train: Pictures, test: Pictures, shape: tuple[int, int, int], *, fit: bool) -> Arrays:
    """Both parts in one shape, from the cache if they were decoded before; see ``edgefl.data.images``."""

    def decode() -> Arrays:
        train_x, test_x = (
            decoded(part.encoded(), len(part.labels), shape, fit=fit) for part in (train, test)
        )
        return Arrays(train_x, train.labels, test_x, test.labels)

    labels = [hashlib.sha256(part.labels.tobytes()).hexdigest() for part in (train, test)]
    how = {"shape": shape, "fit": fit, "labels": labels}
    return decoded_once(list(dict.fromkeys([*train.files, *test.files])), how, decode)


def _absolute(text: str) -> str:
    return str(Path(os.path.expanduser(text)).absolute())  # noqa: PTH111 - a Path fails without such a user


class OwnImages(Dataset):
    """Where the images are, and what they are turned into."""

    path: Annotated[
        str,
        Field(min_length=1, description="the folder; relative paths begin at the current directory"),
        AfterValidator(_absolute),
    ]
    size: Annotated[
        _Side | tuple[_Side, _Side] | None,
        Field(description="height and width to resize to, or one number; null: their own, 32 if they differ"),
    ] = None
    channels: Annotated[Literal[1, 3], Field(description="1 for grey, 3 for colour")] = 3

    def root(self) -> Path:
        """The folder; raises a ``DataError`` where there is none."""
        if not os.path.isdir(self.path):  # noqa: PTH112 - a Path fails on a name that is too long
            raise DataError(
                f"there is no folder {Path(self.path).name!r}",
                where=self.path,
                hint="task.dataset.path must name a folder; relative paths begin at the current directory",
            )
        return Path(self.path)

    def source(self, names: tuple[str, ...], train: Pictures, test: Pictures | None = None) -> Source:
        """The dataset, named after its folder, of classes of these names.

        Without images to ``test`` on, a share of each class's is taken, the same ones for every seed.
        """
        if len(names) < 2:  # noqa: PLR2004 - the least that can be told apart
            raise DataError(f"there is only the class {names[0]!r}; at least 2 are needed", where=self.path)
        counts = np.bincount(train.labels, minlength=len(names))
        if counts.min() < (2 if test is None else 1):
            has = f"class {names[counts.argmin()]!r} has {show_count(int(counts.min()), 'image')} to train on"
            raise DataError(f"{has}; at least 2 are needed, one of them for testing", where=self.path)
        name = Path(self.path).name or "images"
        shape = self.channels, *self._size([train] if test is None else [train, test], name)
        if test is None:
            # Not a run's seed: every run has the same test images. Any number would do.
            kept, held = stratified(train.labels, 0.2, np.random.default_rng(2718), least=1)
            train, test = train.of(kept), train.of(held)
        if not len(test.labels):
            raise DataError("there are no test images", where=self.path)
        known = [names, train.labels.tolist(), test.labels.tolist()]
        content = hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]
        sizes = len(train.labels), len(test.labels)
        spec = Spec(name, shape, *sizes, names, content=content)
        users = None
        if train.users is not None and test.users is not None:
            # Numbered in the order of their names.
            _, numbers = np.unique(np.concatenate((train.users, test.users)), return_inverse=True)
            users = numbers[: sizes[0]], numbers[sizes[0] :]

        def load(folder: Path | None, *, download: bool) -> Arrays:  # noqa: ARG001 - the folder is a parameter
            return decoded_pictures(train, test, shape, fit=True)

        return Source(spec, load, self.path, labels=(train.labels, test.labels), users=users)

    def _size(self, parts: list[Pictures], name: str) -> tuple[int, int]:
        """The height and width that images are resized to: where none is given, that of some of them."""
        if self.size is not None:
            return (self.size, self.size) if isinstance(self.size, int) else self.size
        size, *others = set(chain.from_iterable(part.sizes() for part in parts))
        if others:
            size = 32, 32
            note(f"{name}: sizes differ, so images become 32 x 32; for others, set task.dataset.size")
        return size
