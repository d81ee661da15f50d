"""IID: shuffled and cut into equal parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgefl.data.partitions import Partition
from edgefl.data.partitions._deal import equal_sizes


class Params(Partition):
    """No parameters."""

    def split(
        self,
        labels: NDArray[np.int64],
        classes: int,  # noqa: ARG002
        clients: int,
        rng: np.random.Generator,
    ) -> list[NDArray[np.int64]]:
        """Every sample goes to one client; sizes differ by at most one.

        Raises:
            UserError: there are more clients than samples.
        """
        cuts = np.cumsum(equal_sizes(len(labels), clients))[:-1]
        return [np.sort(part) for part in np.split(rng.permutation(len(labels)), cuts)]
