"""Clients come and go at random: a two-state Markov chain in continuous time, stationary from the start.

A client is available for the share on / (on + off) of the time.
"""

import numpy as np
from pydantic import Field

from edgefl.core.availability import Availability, Duration, OnOff
from edgefl.core.clients import Clients


class Params(Availability):
    on: Duration = Field(description="mean time for which a client stays")
    off: Duration = Field(description="mean time for which it is away")

    def timetable(self, clients: Clients, root: int) -> OnOff:
        everyone = np.ones(len(clients))
        return OnOff(root, comes=everyone / self.off, leaves=everyone / self.on)
