"""Ways to split training data among clients, one file each."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from edgefl.core.arrays import Ints
from edgefl.core.params import Component


class Partition(Component):
    """The parameters of a partition, and what it does.

    Attributes:
        BY_USERS: whether it is given each sample's user in place of its label.
    """

    BY_USERS: ClassVar[bool] = False

    @abstractmethod
    def split(self, labels: Ints, classes: int, clients: int, rng: np.random.Generator) -> list[Ints]:
        """Each client's sorted indices into ``labels``, (n,): at least one, and none twice."""
