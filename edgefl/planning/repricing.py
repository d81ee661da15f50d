"""Prices of traced work, on any numbers of devices and links; neither data nor a method's code is needed.

See ``edgefl.core.price`` for what is assumed.
"""

import math
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from edgefl.core.clients import Clients
from edgefl.core.corners import corners
from edgefl.core.cost import Cost, Work
from edgefl.core.devices import TRACED, Board, Bounds
from edgefl.core.link import Link
from edgefl.core.plan import Plan, Prices
from edgefl.core.price import COLUMNS, Demand, in_dtype


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
    def corners(self) -> "tuple[Pricer, Pricer] | None":
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

    def demands(self, cost: Cost, link: Link) -> list[Demand]:
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
            found.append(Demand.of(cost, bounds, end, pricer.device.power))
        return found


Pricers: TypeAlias = Callable[[str, str], Pricer]
"""A device's pricer by its name and the number type; raises UserError for an unknown number."""


def pricers_of(devices: Mapping[str, Board]) -> Pricers:
    """The devices' pricers, each made on first use."""
    return cache(lambda device, dtype: Pricer(device, devices[device], dtype))


class TracedExchange(NamedTuple):
    """An exchange's work, whose prices have no demand yet, or another; ``costs`` are by kind of client."""

    prices: Prices
    costs: Sequence[Cost]


class Repricer:
    """Prices the exchanges of a plan, which has its traces, on other numbers.

    What has no price, of refused clients, stays without.
    """

    def __init__(self, plan: Plan) -> None:
        self._kinds = plan.clients.one_of_each_kind()
        self._works = [_recorded(prices, self._kinds) for prices in plan.prices]
        self._left_out = [
            set(np.flatnonzero(np.isnan(prices.demand.work_s)).tolist()) for prices in plan.prices
        ]
        self._made: dict[tuple[str, str], Pricer] = {}

    def prices(self, devices: Mapping[str, Board], links: Mapping[str, Link]) -> tuple[Prices, ...]:
        """Prices on these devices and links, by name; a ``UserError`` if a number they need is unknown."""

        def pricer(device: str, dtype: str) -> Pricer:
            made = self._made.get((device, dtype))
            # The times of a device that is the same record as before are known.
            if made is None or made.device is not devices[device]:
                made = self._made[device, dtype] = Pricer(device, devices[device], dtype)
            return made

        works = zip(self._works, self._left_out, strict=True)
        return tuple(priced(work, self._kinds, links, pricer, without) for work, without in works)


def _recorded(prices: Prices, kinds: Clients) -> TracedExchange:
    """An exchange's work, from its traces."""
    known, costs = dict[str, Cost](), list[Cost]()
    for model, steps in zip(kinds.model.tolist(), prices.taken, strict=True):
        key = repr((model, steps))
        if key not in known:
            known[key] = prices.traces[model].cost(steps)
        costs.append(known[key])
    return TracedExchange(prices, costs)


def priced(
    work: TracedExchange,
    kinds: Clients,
    links: Mapping[str, Link],
    pricers: Pricers,
    left_out: Container[int],
) -> Prices:
    """An exchange's prices; with corners where those of a kind differ, without for the kinds left out.

    Raises:
        UserError: a number that pricing needs is unknown for a device.
    """
    places = []
    rows = zip(rows_of(kinds), work.prices.taken, work.costs, strict=True)
    for kind, ((device, link, dtype), taken, cost) in enumerate(rows):
        if kind in left_out:
            asked = [Demand.of(cost, Bounds(math.nan), links[link])]
        else:
            asked = pricers(device, dtype).demands(cost, links[link])
        own = {"steps": sum(map(Counter.total, taken)), "peak_bytes": in_dtype(cost.peak_bytes, dtype)}
        places.append([one._replace(**own) for one in asked])
    ends = []
    for end in range(max(map(len, places), default=1)):
        # A kind without corners is at its only price there.
        demands = [demands[end % len(demands)] for demands in places]
        columns = ([getattr(one, name) for one in demands] for name in COLUMNS)
        ends.append(Demand(*map(np.array, columns, COLUMNS.values())))
    here, *corners = ends
    cornered = (corners[0], corners[1]) if corners else None
    return replace(work.prices, demand=here, corners=cornered)


def rows_of(kinds: Clients) -> Iterator[tuple[str, str, str]]:
    """The names of each one's device, link and dtype."""
    columns = (kinds.device, kinds.link, kinds.dtype)
    for device, link, dtype in zip(*(column.tolist() for column in columns), strict=True):
        yield kinds.devices[device], kinds.links[link], kinds.dtypes[dtype]
