"""Distributions of multipliers of compute time, one file each; 1 is the device as its file describes it."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgefl.core.named import Named

Floats: TypeAlias = NDArray[np.float64]


class Sampler(Named):
    """What every distribution has."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """``size`` multipliers."""
