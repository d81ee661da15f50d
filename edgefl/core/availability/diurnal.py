"""Availability follows the local hour: mean x (1 + amplitude x cos(2 pi (hour - peak) / 24 h)).

Bonawitz et al. 2019, Section 9: phones train at night, and four times as many take part at the peak as at
the lowest point of a day, which is an amplitude of (4 - 1) / (4 + 1) = 0.6. The rest is assumed: a peak at 2
at night, a client that is available a quarter of the time, and states that are drawn anew once an hour in the
mean.

A client's state is drawn anew at the events of a Poisson process of rate r = 1 / ``correlation``. For P(t)
to be the probability above at every time, the draw's probability is P + P' / r.
"""

import math

import numpy as np
from pydantic import Field, model_validator

from edgefl.core.arrays import Floats, Ints
from edgefl.core.availability import (
    DAY_S,
    HOUR_S,
    Availability,
    Duration,
    OnOff,
    Start,
    Zones,
    relative_lognormal,
    zones_of,
)
from edgefl.core.clients import Clients

_TURN = 2 * math.pi / DAY_S


class Params(Availability):
    mean: float = Field(0.25, gt=0, lt=1, description="share of the day that a client is available")
    amplitude: float = Field(0.6, ge=0, le=1, description="the swing around the mean, as a share of it")
    peak: float = Field(2.0, ge=0, lt=24, description="local hour of the largest availability")
    correlation: Duration = Field(HOUR_S, description="mean time until a state is drawn anew")
    sigma: float = Field(0.0, ge=0, le=10, description="of a lognormal factor a client (FLGo's SLN); 0: none")
    zones: Zones = (0.0,)
    start: Start = 0.0

    @property
    def _swing(self) -> float:
        """The amplitude of the draws' probability, as a share of the mean."""
        return self.amplitude * math.hypot(1, _TURN * self.correlation)

    @model_validator(mode="after")
    def _is_a_probability(self) -> "Params":
        highest, lowest = self.mean * (1 + self._swing), 1 - self._swing
        if highest > 1 or lowest < 0:
            limit = "above 1" if highest > 1 else "below 0"
            raise ValueError(f"the probability would go {limit}: lower 'mean', 'amplitude' or 'correlation'")
        return self

    def start_h(self) -> float:
        return self.start

    def timetable(self, clients: Clients, root: int) -> OnOff:
        count = len(clients)
        factor = relative_lognormal(root, count, self.sigma) if self.sigma else np.ones(count)
        phase_s = (zones_of(self.zones, root, count) + self.start - self.peak) * HOUR_S
        lead = math.atan(_TURN * self.correlation)
        highest, lowest = self.mean * (1 + self._swing), self.mean * (1 - self._swing)

        def drawn(whom: Ints, t_s: Floats) -> Floats:
            turn = _TURN * (t_s + phase_s[whom])
            return factor[whom] * self.mean * (1 + self._swing * np.cos(turn + lead))

        comes, leaves = factor * highest / self.correlation, (1 - factor * lowest) / self.correlation
        kept = (
            lambda whom, t_s: drawn(whom, t_s) / (comes[whom] * self.correlation),
            lambda whom, t_s: (1 - drawn(whom, t_s)) / (leaves[whom] * self.correlation),
        )
        return OnOff(root, comes, leaves, kept)
