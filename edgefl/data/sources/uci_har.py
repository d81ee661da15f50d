"""UCI HAR: phones' accelerometers and gyroscopes of 30 people, 6 activities (Anguita et al., ESANN 2013).

A sample is 2.56 s at 50 Hz: three axes each of the body's acceleration, of its angular velocity and of the
whole acceleration, (9, 1, 128), float32, in the units of the files: g and rad/s. The published split tests on
9 people who are not trained on.
"""

from pathlib import Path
from typing import Any

import numpy as np

from edgefl.data.dataset import Arrays, Source, Spec, evenly
from edgefl.data.images import decoded_once, explained
from edgefl.data.readers import unpacked
from edgefl.data.sources import Dataset

_SIGNALS = [f"{what}_{axis}" for what in ("body_acc", "body_gyro", "total_acc") for axis in "xyz"]
_NAMES = ("walking", "walking upstairs", "walking downstairs", "sitting", "standing", "laying")
SPEC = Spec("uci-har", (len(_SIGNALS), 1, 128), 7_352, 2_947, _NAMES, signals=True)

_RECIPE = "unpack there https://archive.ics.uci.edu/static/public/240/human+activity+recognition+using+smartphones.zip"


class Params(Dataset):
    def build(self) -> Source:
        return unpacked(
            SPEC,
            _read,
            below=("uci_har", "uci-har", "UCI HAR Dataset"),
            parts=("train/Inertial Signals", "test/Inertial Signals"),
            recipe=_RECIPE,
            # Nobody is in both parts.
            users=(evenly(SPEC.train_size, 21), 21 + evenly(SPEC.test_size, 9)),
        )


def _read(root: Path) -> Arrays:
    """Signals, activities and people, of whom the latter two begin at 1 in the files."""
    parts = []
    for part in ("train", "test"):
        signals = [f"Inertial Signals/{name}_{part}.txt" for name in _SIGNALS]
        parts.append([root / part / name for name in (*signals, f"y_{part}.txt", f"subject_{part}.txt")])

    def decode() -> Arrays:
        (train_x, train_y, train), (test_x, test_y, test) = map(_part, parts)
        return Arrays(train_x, train_y, test_x, test_y, train, test)

    return decoded_once([*parts[0], *parts[1]], {"layout": "uci-har"}, decode)


def _part(files: list[Path]) -> tuple[Any, Any, Any]:
    signals = [_table(path, np.float32) for path in files[:-2]]
    activities, people = (_table(path, np.int64)[:, 0] - 1 for path in files[-2:])
    with explained("the signals do not belong together", str(files[0].parent), _RECIPE):
        return np.stack(signals, axis=1)[:, :, None, :], activities, people


def _table(path: Path, dtype: type[np.generic]) -> Any:
    with explained(f"cannot read {path.name}", str(path), _RECIPE):
        return np.loadtxt(path, dtype=dtype, ndmin=2)
