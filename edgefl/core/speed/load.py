"""Co-running applications: now and then another program takes a share of a client's speed.

Such times come and go as a two-state Markov chain in continuous time; they are ``share`` of all time and last
``length`` in the mean. The defaults are assumed.
"""

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from edgefl.core.availability import Duration, OnOff
from edgefl.core.clients import Clients
from edgefl.core.speed import Pace, Speed, SpeedCurve


class Params(Speed):
    share: float = Field(0.2, gt=0, lt=1, description="share of time with another program")
    length: Duration = Field(300.0, description="mean length of such a time")
    factor: float = Field(0.5, ge=0.001, le=1, description="share of the speed that remains")

    def curve(self, clients: Clients, root: int) -> "Load":
        everyone = np.ones(len(clients))
        between_s = self.length * (1 - self.share) / self.share
        loaded = OnOff(root, comes=everyone / between_s, leaves=everyone / self.length, purpose="loaded")
        return Load(loaded, self.factor)


@dataclass
class Load(SpeedCurve):
    loaded: OnOff
    factor: float

    def at(self, client: int, t_s: float, state: float) -> Pace:  # noqa: ARG002
        loaded, until_s = self.loaded.of_one(client, t_s)
        return Pace(self.factor if loaded else 1.0, until_s)
