"""The benchmark's tensors, from the file named by EDGEFL_BENCHMARK_TENSORS, as a dataset."""

import json
import os
from pathlib import Path

import numpy as np

from edgefl.data.dataset import Arrays, Source, Spec
from edgefl.data.sources import Dataset

_FILE = Path(os.environ["EDGEFL_BENCHMARK_TENSORS"])


def _spec() -> Spec:
    with np.load(_FILE) as found:
        shape = tuple(json.loads(str(found["settings"]))["shape"])
        train, test = len(found["y"]), len(found["test_y"])
    return Spec(
        name="tensors",
        shape=shape,
        train_size=train,
        test_size=test,
        class_names=tuple("0123456789"),
        mean=(0.5,) * shape[0],
        std=(0.25,) * shape[0],
    )


SPEC = _spec()


class Params(Dataset):
    """No parameters."""

    def build(self) -> Source:
        """See ``SPEC``."""
        return Source(SPEC, load)


def load(folder: Path | None, *, download: bool) -> Arrays:  # noqa: ARG001 - the interface of datasets
    """The images; ``folder`` and ``download`` are not used."""
    with np.load(_FILE) as found:
        return Arrays(found["x"], found["y"], found["test_x"], found["test_y"])
