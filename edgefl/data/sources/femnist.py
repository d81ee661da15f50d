"""FEMNIST: EMNIST's characters by writer, in LEAF's JSON files (Caldas et al. 2018, section 3.1).

3,550 writers and 805,263 characters of 62 classes: digits, then capital and small letters. Which of a
writer's characters are for testing is LEAF's choice, by default a tenth (its ``preprocess.sh -t sample``).
"""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.core.errors import DataError
from edgefl.data.dataset import Arrays, Source, Spec, evenly
from edgefl.data.image_cache import decoded_once
from edgefl.data.images import explained
from edgefl.data.readers import found_in
from edgefl.data.sources import Dataset

_WRITERS = 3550
_SHAPE = (1, 28, 28)
_BRIGHTEST = 255
_FOLDERS = ("femnist", "femnist/data", "leaf/data/femnist/data")
_RECIPE = (
    "in TalwalkarLab/leaf's data/femnist, run ./preprocess.sh -s niid --sf 1.0 -k 0 -t sample; "
    "it writes data/train/*.json and data/test/*.json"
)


class Params(Dataset):
    """No parameters."""

    def build(self) -> Source:
        """The characters of all writers that the files have."""
        names = tuple(string.digits + string.ascii_uppercase + string.ascii_lowercase)
        spec = Spec("femnist", _SHAPE, len(names), 724_737, 80_526, names)

        def load(folder: Path | None, *, download: bool) -> Arrays:  # noqa: ARG001 - LEAF's scripts make the files
            root = found_in(spec.name, folder, _FOLDERS, ("train", "test"), _RECIPE)
            parts = [sorted((root / part).glob("*.json")) for part in ("train", "test")]
            if not all(parts):
                raise DataError(
                    "there are no *.json files in train/ and test/", where=str(root), hint=_RECIPE
                )

            def decode() -> Arrays:
                (train_x, train_y, train), (test_x, test_y, test) = map(_read, parts)
                _, users = np.unique(train + test, return_inverse=True)
                return Arrays(train_x, train_y, test_x, test_y, users[: len(train)], users[len(train) :])

            how = {"layout": "leaf", "files": [len(part) for part in parts]}
            return decoded_once([*parts[0], *parts[1]], how, decode)

        users = evenly(spec.train_size, _WRITERS), evenly(spec.test_size, _WRITERS)
        return Source(spec, load, "FEMNIST", users=users)


def _read(files: list[Path]) -> tuple[Any, Any, list[str]]:
    """Images, labels and writers of LEAF's files.

    Raises:
        DataError: a file is not LEAF's.
    """
    x, y, users = [np.empty((0, *_SHAPE))], [], []
    for path in files:
        with explained(f"{path.name} is not one of LEAF's files", str(path), _RECIPE):
            for user, own in json.loads(path.read_text(encoding="utf-8"))["user_data"].items():
                x.append(np.array(own["x"], dtype=np.float64).reshape(-1, *_SHAPE))
                y.append(np.array(own["y"], dtype=np.int64))
                users += [user] * len(y[-1])
    pixels = np.concatenate(x)
    if not y or not ((pixels >= 0) & (pixels <= 1)).all():
        raise DataError(
            f"{files[0].parent.name}/ must hold writers with images of values from 0 to 1",
            where=str(files[0].parent),
            hint=_RECIPE,
        )
    return np.rint(pixels * _BRIGHTEST).astype(np.uint8), np.concatenate(y), users
