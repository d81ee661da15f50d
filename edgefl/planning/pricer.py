"""Prices costs on one device; see ``edgefl.core.price`` for what is assumed."""

from __future__ import annotations

import math
from functools import cached_property

from edgefl.core.corners import corners
from edgefl.core.cost import Cost, Work
from edgefl.core.devices import TRACED, Board, Bounds
from edgefl.core.link import Link
from edgefl.core.price import Demand


class Pricer:
    """Prices work on one device in one number type; caches the times of work.

    Raises:
        UserError: a number that timing needs is unknown. Unknown power makes energies unknown, unknown
            memory refuses nobody.
    """

    def __init__(self, name: str, device: Board, dtype: str = TRACED) -> None:
        self.name = name
        self.device = device
        self.dtype = dtype
        self._clock = device.clock(name, dtype)
        # By identity; holding the work keeps its id from being reused.
        self._known: dict[int, tuple[Work, Bounds]] = {}
        self._links: dict[int, tuple[Link, tuple[Link, Link] | None]] = {}

    @cached_property
    def is_lower_bound(self) -> bool:
        """Whether times are lower bounds: what starting kernels takes is left out."""
        launch = self.device.launch()
        return not launch.value and launch.high is None

    @cached_property
    def corners(self) -> tuple[Pricer, Pricer] | None:
        """The pricers of the device's cheap and costly corners; None where neither differs from it."""
        ends = corners(self.device)
        if ends is None:
            return (self, self) if self.is_lower_bound else None
        cheap, costly = (Pricer(self.name, end, self.dtype) for end in ends)
        return cheap, costly

    def _link_corners(self, link: Link) -> tuple[Link, Link] | None:
        """The corners of a link; None where neither differs from it."""
        found = self._links.get(id(link))
        if found is None:
            found = self._links[id(link)] = link, corners(link)
        return found[1]

    def time(self, cost: Cost) -> Bounds:
        """All steps, one after another."""
        bounds = Bounds()
        for work, count in cost.steps:
            timed = self._known.get(id(work))
            if timed is None:
                timed = self._known[id(work)] = work, self._clock.time(work)
            bounds = bounds.plus(timed[1], count)
        return bounds

    def demands(self, cost: Cost, link: Link, steps: int = 0) -> list[Demand]:
        """The quantities of a job; where numbers are intervals, also at the cheap and the costly corner."""
        places = [(self, link)]
        links = self._link_corners(link)
        if self.corners or links:
            places += zip(self.corners or (self, self), links or (link, link), strict=True)
        found = list[Demand]()
        for pricer, end in places:
            bounds = pricer.time(cost)
            # The last one, where there are several, is the costly corner.
            if len(found) > 1 and cost.steps and self.is_lower_bound:
                bounds = bounds._replace(launch_s=math.nan)
            found.append(Demand.of(cost, bounds, end, pricer.device.power, steps))
        return found
