"""Prices costs on one device; see ``edgefl.core.price`` for what is assumed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from functools import cached_property

from edgefl.core.corners import corners, timing_has_interval
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
        timed = timing_has_interval(self.device)
        cheap, costly = (self._at(end, timed=timed) for end in ends)
        return cheap, costly

    def _at(self, device: Board, *, timed: bool) -> Pricer:
        """The pricer of a corner; one that is not timed anew shares this one's times."""
        if timed:
            return Pricer(self.name, device, self.dtype)
        pricer = copy(self)
        pricer.device = device
        return pricer

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
        return [
            Demand.of(cost, bounds.seconds, end, steps).drawing(device.power, end, bounds)
            for device, bounds, end in self._places(cost, link)
        ]

    def _places(self, cost: Cost, link: Link) -> Iterator[tuple[Board, Bounds, Link]]:
        """Device, time of the work and link: as they are, then at both corners if these differ."""
        yield self.device, self.time(cost), link
        links = self._link_corners(link)
        if self.corners is None and links is None:
            return
        cheap, costly = self.corners or (self, self)
        near, far = links or (link, link)
        yield cheap.device, cheap.time(cost), near
        bounds = costly.time(cost)
        if cost.steps and self.is_lower_bound:
            bounds = bounds._replace(launch_s=math.nan)
        yield costly.device, bounds, far
