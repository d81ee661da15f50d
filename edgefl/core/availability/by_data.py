"""Clients with more data, or with less, are available more often: by (samples / most samples)^power.

The more- and less-data-first modes of FLGo (Wang et al. 2023, arXiv:2306.12079), whose state is drawn anew
every round; here, in continuous time, at the events of a Poisson process, once an hour in the mean (assumed).
"""

import numpy as np
from pydantic import Field

from edgefl.core.availability import HOUR_S, Availability, Duration, Highest, OnOff, at_share
from edgefl.core.clients import Clients


class Params(Availability):
    power: float = Field(1.0, description="positive: more data, more often; negative: less data, more often")
    highest: Highest = 1.0
    correlation: Duration = Field(HOUR_S, description="mean time until a state is drawn anew")

    def timetable(self, clients: Clients, root: int) -> OnOff:
        samples = np.maximum(clients.samples, 1)
        most = samples.max() if self.power > 0 else samples.min()
        return at_share(root, self.highest * (samples / most) ** self.power, self.correlation)
