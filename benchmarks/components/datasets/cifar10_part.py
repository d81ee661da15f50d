"""The same part of CIFAR-10 in every run: as many images of each class, drawn once with a fixed seed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from pydantic import Field

from edgefl.data.dataset import Arrays, Source, stratified
from edgefl.data.sources import Dataset, cifar10

_SEED = 2718


class Params(Dataset):
    """How many images."""

    train: int = Field(5000, gt=0, le=cifar10.SPEC.train_size, multiple_of=10, description="training images")
    test: int = Field(2000, gt=0, le=cifar10.SPEC.test_size, multiple_of=10, description="test images")

    def build(self) -> Source:
        """The part, read where CIFAR-10 is."""
        spec = replace(cifar10.SPEC, train_size=self.train, test_size=self.test)

        def load(folder: Path | None, *, download: bool) -> Arrays:
            whole = cifar10.Params().build().load(folder, download=download)
            rng = np.random.default_rng(_SEED)
            _, train = stratified(whole.train_y, self.train / len(whole.train_y), rng)
            _, test = stratified(whole.test_y, self.test / len(whole.test_y), rng)
            return Arrays(whole.train_x[train], whole.train_y[train], whole.test_x[test], whole.test_y[test])

        return Source(spec, load, __file__)
