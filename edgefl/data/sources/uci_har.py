"""UCI HAR: phones' accelerometers and gyroscopes of 30 people, 6 activities (Anguita et al., ESANN 2013).

A sample is 2.56 s at 50 Hz: three axes each of the body's acceleration, of its angular velocity and of the
whole acceleration, (9, 1, 128). The published split tests on 9 people who are not trained on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from edgefl.data.dataset import Arrays, Source, Spec, evenly
from edgefl.data.image_cache import decoded_once
from edgefl.data.images import explained
from edgefl.data.readers import found_in
from edgefl.data.sources import Dataset

_SIGNALS = [f"{what}_{axis}" for what in ("body_acc", "body_gyro", "total_acc") for axis in "xyz"]
_STEPS = 128
_FOLDERS = ("uci_har", "uci-har", "UCI HAR Dataset")
_RECIPE = "unpack there https://archive.ics.uci.edu/static/public/240/human+activity+recognition+using+smartphones.zip"
_NAMES = ("walking", "walking upstairs", "walking downstairs", "sitting", "standing", "laying")


class Params(Dataset):
    """No parameters."""

    def build(self) -> Source:
        """The raw signals, float32, in the units of the files: g and rad/s."""
        shape = (len(_SIGNALS), 1, _STEPS)
        spec = Spec("uci-har", shape, len(_NAMES), 7_352, 2_947, _NAMES, signals=True)

        def load(folder: Path | None, *, download: bool) -> Arrays:  # noqa: ARG001 - an archive in an archive
            root = found_in(
                spec.name, folder, _FOLDERS, ("train/Inertial Signals", "test/Inertial Signals"), _RECIPE
            )
            parts = {part: _files(root, part) for part in ("train", "test")}

            def decode() -> Arrays:
                (train_x, train_y, train), (test_x, test_y, test) = map(_read, parts.values())
                return Arrays(train_x, train_y, test_x, test_y, train, test)

            return decoded_once([*parts["train"], *parts["test"]], {"layout": "uci-har"}, decode)

        # Nobody is in both parts.
        users = evenly(spec.train_size, 21), 21 + evenly(spec.test_size, 9)
        return Source(spec, load, "UCI HAR", users=users)


def _files(root: Path, part: str) -> list[Path]:
    """A part's files: the signals in order, the activities, the people."""
    folder = root / part
    signals = [folder / "Inertial Signals" / f"{name}_{part}.txt" for name in _SIGNALS]
    return [*signals, folder / f"y_{part}.txt", folder / f"subject_{part}.txt"]


def _read(files: list[Path]) -> tuple[Any, Any, Any]:
    """Signals (N, 9, 1, 128), activities and people, which both begin at 1 in the files.

    Raises:
        DataError: a file is not UCI HAR's, or the signals have different numbers of samples.
    """
    signals = [_table(path, np.float32) for path in files[:-2]]
    activities, people = (_table(path, np.int64)[:, 0] - 1 for path in files[-2:])
    with explained("the signals do not belong together", str(files[0].parent), _RECIPE):
        x = np.stack(signals, axis=1)[:, :, None, :]
    return x, activities, people


def _table(path: Path, dtype: type[np.generic]) -> Any:
    with explained(f"cannot read {path.name}", str(path), _RECIPE):
        return np.loadtxt(path, dtype=dtype, ndmin=2)
