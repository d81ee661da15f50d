"""Distributions, one file each: of numbers of samples, or of multipliers of compute time (1 is no change)."""

from abc import abstractmethod

from edgefl.core.arrays import Floats
from edgefl.core.params import Component


class Sampler(Component):
    @abstractmethod
    def draw(self, uniform: Floats) -> Floats:
        """Values (n,) from independent draws from (0, 1), (2, n); see ``edgefl.core.draws``."""
