"""How fast clients are: all of a fleet's curves at once."""

import math
from collections.abc import Sequence
from typing import TypeAlias

from edgefl.core import draws
from edgefl.core.clients import Clients
from edgefl.core.speed import Pace, Speed

States: TypeAlias = tuple[float, ...]
"""A client's state on each of a fleet's curves."""


class FleetCurve:
    """The product of the curves' factors; none is false."""

    def __init__(self, speeds: Sequence[Speed], clients: Clients, root: int) -> None:
        """The curves of a run's clients, each with draws of its own from the run's seed."""
        self._curves = [
            speed.curve(clients, draws.derive(root, "speed", nth=place)) for place, speed in enumerate(speeds)
        ]
        self.idle: States = (0.0,) * len(self._curves)

    def __len__(self) -> int:
        return len(self._curves)

    def at(self, client: int, t_s: float, states: States) -> Pace:
        factor, until_s, power = 1.0, math.inf, 1.0
        for curve, state in zip(self._curves, states, strict=True):
            own = curve.at(client, t_s, state)
            factor, until_s, power = factor * own.factor, min(until_s, own.until_s), power * own.power
        return Pace(factor, until_s, power)

    def after(self, client: int, states: States, from_s: float, to_s: float, *, working: bool) -> States:
        pairs = zip(self._curves, states, strict=True)
        return tuple([curve.after(client, state, from_s, to_s, working=working) for curve, state in pairs])
