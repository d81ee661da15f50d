"""Max-min fair shares: what each flow gets of resources that many use at once, by progressive filling.

All flows' rates rise together. A flow stops at its own cap, or where a resource that it uses is saturated,
and the rest go on. The result is the only allocation in which no flow can get more without taking from one
that has no more (Bertsekas and Gallager 1992, Data Networks, Section 6.5.2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgefl.core.draws import Floats

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Uses(NamedTuple):
    """Which flow uses which resource, each pair at most once.

    Attributes:
        flow: its number, (u,).
        resource: its number, (u,).
        weight: what a unit of the flow's rate takes of the resource, (u,), above 0.
    """

    flow: Ints
    resource: Ints
    weight: Floats


def max_min(
    capacities: ArrayLike,
    uses: Uses,
    caps: ArrayLike,
    penalties: ArrayLike = 1.0,
    shared: ArrayLike = True,  # noqa: FBT002 - an array
) -> Floats:
    """The weighted max-min fair rates of flows, (n,), in the capacities' unit.

    Of two flows on one resource, one with twice the penalty gets half the rate. On a shared resource, rates
    times weights add up to its capacity at most. A fat pipe limits each flow's rate times weight alone, and
    the first flow that fills it stops all of its flows (as in SimGrid: Casanova et al. 2014, "Versatile,
    scalable, and accurate simulation of distributed applications and platforms").

    All resources that are saturated before any other that their flows use are filled in one step, so that the
    number of steps is that of bottlenecks that follow from each other: a few, for cells below one server.

    Args:
        capacities: of each resource, (r,); 0 and infinity are allowed.
        uses: who uses what.
        caps: the most that each flow takes, (n,); 0 and infinity are allowed.
        penalties: of each flow, (n,), above 0.
        shared: whether a resource is shared, (r,); else it is a fat pipe.

    Raises:
        ValueError: a capacity or cap is negative or no number, or a weight or penalty is not above 0.
    """
    limits, most = np.asarray(capacities, dtype=np.float64), np.asarray(caps, dtype=np.float64)
    penalty = np.broadcast_to(np.asarray(penalties, dtype=np.float64), most.shape)
    if not ((limits >= 0).all() and (most >= 0).all()):
        raise ValueError("capacities and caps must be 0 or more")
    if not ((uses.weight > 0).all() and (penalty > 0).all()):
        raise ValueError("weights and penalties must be above 0")
    # What has no limit stops nobody.
    bounded = np.isfinite(limits[uses.resource])
    flow, resource = uses.flow[bounded], uses.resource[bounded]
    filling = _Filling(limits, np.asarray(shared, dtype=np.bool_), most * penalty)
    levels = filling.levels(flow, resource, uses.weight[bounded] / penalty[flow])
    return np.minimum(levels / penalty, most)


class _Filling:
    """Levels (rates times penalties) rise together; ``slope`` is what a use takes for a unit of level."""

    def __init__(self, capacities: Floats, shared: Bools, stops: Floats) -> None:
        self._left = capacities.copy()
        self._shared = shared
        self._stops = stops
        # The level at which each resource would be saturated if its flows met no other limit.
        self._saturated = np.zeros(len(capacities))

    def levels(self, flow: Ints, resource: Ints, slope: Floats) -> Floats:
        """The level at which each flow stops, (n,)."""
        found = self._stops.copy()
        while len(flow):
            self._saturate(resource, slope)
            bound = self._stops.copy()
            np.minimum.at(bound, flow, self._saturated[resource])
            # Levels of saturation never fall, so that a flow whose own cap comes first is done. So are the
            # flows of a resource that none of them leaves before.
            first = np.full(len(self._left), np.inf)
            np.minimum.at(first, resource, bound[flow])
            done = self._stops <= bound
            done[flow[first[resource] >= self._saturated[resource]]] = True
            found[flow] = np.where(done[flow], bound[flow], found[flow])
            ends = done[flow]
            taken = slope[ends] * bound[flow[ends]]
            self._left -= np.bincount(resource[ends], taken, len(self._left)) * self._shared
            flow, resource, slope = flow[~ends], resource[~ends], slope[~ends]
        return found

    def _saturate(self, resource: Ints, slope: Floats) -> None:
        total = np.bincount(resource, slope, len(self._left))
        steepest = np.zeros(len(self._left))
        np.maximum.at(steepest, resource, slope)
        divisor = np.where(self._shared, total, steepest)
        level = np.divide(self._left, divisor, out=np.full(len(divisor), np.inf), where=divisor > 0)
        # Rounding must not let it fall.
        self._saturated = np.maximum(self._saturated, level)
