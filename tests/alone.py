"""A job alone on one device, priced: seconds and joules, with their bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from edgefl.core.corners import Interval
from edgefl.core.cost import Cost
from edgefl.core.devices import Bounds
from edgefl.core.link import Link
from edgefl.core.price import Demand, Energy, WorkingDraw, above_idle_between
from edgefl.core.totals import known
from edgefl.planning.repricing import Pricer


@dataclass(frozen=True)
class Price:
    """What a demand takes; ``corners`` is None where neither differs."""

    demand: Demand
    bounds: Bounds
    corners: tuple[Price, Price] | None = None

    down_s = property(lambda self: self.demand.down_s)
    compute_s = property(lambda self: self.demand.work_s)
    up_s = property(lambda self: self.demand.up_s)
    seconds = property(lambda self: self.down_s + self.compute_s + self.up_s)
    energy = property(lambda self: Energy(*map(known, self.demand.energy())))

    def between(self, figure: Callable[[Price], float | None]) -> Interval:
        """The bounds of a figure."""
        return Interval.of(*map(figure, self.corners or (self, self)))

    def energy_between(self) -> dict[str, Interval]:
        """The bounds of the energy by phase."""
        ends = self.corners or (self, self)
        found = {name: self.between(lambda one, of=name: getattr(one.energy, of)) for name in Energy._fields}
        draws = ((one.compute_s, one.demand.compute_w, one.demand.idle_w) for one in ends)
        return found | {"compute_j": above_idle_between(*(WorkingDraw(*draw) for draw in draws))}


def priced(pricer: Pricer, cost: Cost, link: Link, steps: int = 0) -> Price:
    """A job's price."""
    here, *ends = (Price(one, pricer.time(cost)) for one in pricer.demands(cost, link, steps))
    return replace(here, corners=tuple(ends)) if ends else here
