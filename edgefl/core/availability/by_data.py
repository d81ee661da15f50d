"""Clients with more data, or with less, are available more often: by (samples / most samples)^power.

The more- and less-data-first modes of FLGo (Wang et al. 2023, arXiv:2306.12079), whose state is drawn anew
every round; here, in continuous time, at the events of a Poisson process, once an hour in the mean (assumed).
"""

import numpy as np
from pydantic import Field

from edgefl.core.arrays import Floats
from edgefl.core.availability import ByShare
from edgefl.core.clients import Clients


class Params(ByShare):
    power: float = Field(1.0, description="positive: more data, more often; negative: less data, more often")

    def relative(self, clients: Clients, root: int) -> Floats:  # noqa: ARG002
        samples = np.maximum(clients.samples, 1)
        most = samples.max() if self.power > 0 else samples.min()
        return (samples / most) ** self.power
