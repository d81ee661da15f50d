"""scikit-learn's handwritten digits, 8 x 8 grey: needs neither files nor a network.

The test part of the UCI "Optical Recognition of Handwritten Digits" set (1,797 images). It comes without a
split; here, 20% of each class are for testing, drawn once with a fixed seed.
"""

from importlib.metadata import distribution
from pathlib import Path

import numpy as np

from edgefl.data.dataset import Arrays, Source, Spec, stratified
from edgefl.data.sources import Dataset

# Mean and deviation as measured on the training part, after scaling to 0..255.
SPEC = Spec("digits", (1, 8, 8), 1438, 359, tuple("0123456789"), mean=(0.3049,), std=(0.3757,))


class Params(Dataset):
    def build(self) -> Source:
        return Source(SPEC, load, embedded=True)


def load(folder: Path | None, *, download: bool) -> Arrays:  # noqa: ARG001 - the signature of all sources
    """The images, whatever ``folder`` and ``download`` say: they come with scikit-learn."""
    # Read without importing all of scikit-learn: 64 pixels and a label per row.
    file = distribution("scikit-learn").locate_file("sklearn/datasets/data/digits.csv.gz")
    table = np.loadtxt(str(file), delimiter=",")
    x = np.rint(table[:, :-1].reshape(-1, *SPEC.shape) * (255 / 16)).astype(np.uint8)
    y = table[:, -1].astype(np.int64)
    kept, held = stratified(y, 0.2, np.random.default_rng(1797))
    return Arrays(x[kept], y[kept], x[held], y[held])
