"""FEMNIST: EMNIST's characters by writer, in LEAF's JSON files (Caldas et al. 2018, section 3.1).

3,550 writers and 805,263 characters of 62 classes: digits, then capital and small letters. Which of a
writer's characters are for testing is LEAF's choice, by default a tenth (its ``preprocess.sh -t sample``).
"""

import json
import string
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.core.errors import DataError
from edgefl.data.dataset import Arrays, Source, Spec, evenly
from edgefl.data.images import decoded_once, explained
from edgefl.data.readers import unpacked
from edgefl.data.sources import Dataset

_NAMES = tuple(string.digits + string.ascii_uppercase + string.ascii_lowercase)
SPEC = Spec("femnist", (1, 28, 28), 724_737, 80_526, _NAMES)

_WRITERS = 3550
_RECIPE = (
    "in TalwalkarLab/leaf's data/femnist, run ./preprocess.sh -s niid --sf 1.0 -k 0 -t sample; "
    "it writes data/train/*.json and data/test/*.json"
)


class Params(Dataset):
    def build(self) -> Source:
        """The characters of all writers that the files have."""
        return unpacked(
            SPEC,
            _read,
            below=("femnist", "femnist/data", "leaf/data/femnist/data"),
            parts=("train", "test"),
            recipe=_RECIPE,
            users=(evenly(SPEC.train_size, _WRITERS), evenly(SPEC.test_size, _WRITERS)),
        )


def _read(root: Path) -> Arrays:
    parts = [sorted((root / part).glob("*.json")) for part in ("train", "test")]
    if not all(parts):
        raise DataError("there are no *.json files in train/ and test/", where=str(root), hint=_RECIPE)

    def decode() -> Arrays:
        (train_x, train_y, train), (test_x, test_y, test) = map(_part, parts)
        _, users = np.unique(train + test, return_inverse=True)
        return Arrays(train_x, train_y, test_x, test_y, users[: len(train)], users[len(train) :])

    return decoded_once([*parts[0], *parts[1]], {"layout": "leaf", "files": [*map(len, parts)]}, decode)


def _part(files: list[Path]) -> tuple[Any, Any, list[str]]:
    """Images, labels and writers of a part's files."""
    x, y, users = [np.empty((0, *SPEC.shape))], [], []
    for path in files:
        with explained(f"{path.name} is not one of LEAF's files", str(path), _RECIPE):
            for user, own in json.loads(path.read_text(encoding="utf-8"))["user_data"].items():
                x.append(np.array(own["x"], dtype=np.float64).reshape(-1, *SPEC.shape))
                y.append(np.array(own["y"], dtype=np.int64))
                users += [user] * len(y[-1])
    pixels = np.concatenate(x)
    if not y or not ((pixels >= 0) & (pixels <= 1)).all():
        folder = files[0].parent
        what = f"{folder.name}/ must hold writers with images of values from 0 to 1"
        raise DataError(what, where=str(folder), hint=_RECIPE)
    return np.rint(pixels * 255).astype(np.uint8), np.concatenate(y), users
