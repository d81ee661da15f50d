"""A job alone on one device, priced: seconds and joules, with their bounds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from edgefl.core.corners import Interval, known
from edgefl.core.cost import Cost
from edgefl.core.devices import Bounds
from edgefl.core.link import Link
from edgefl.core.price import ENERGIES, Demand, above_idle_between
from edgefl.planning.repricing import Pricer


class Energy(NamedTuple):
    """A job's ``ENERGIES``; None for unknown ones."""

    receive_j: float | None
    compute_j: float | None
    transmit_j: float | None
    tail_j: float | None
    idle_j: float | None

    joules = property(lambda self: None if None in self else sum(self))


@dataclass(frozen=True)
class Price:
    """What a demand takes; ``corners`` is None where neither differs."""

    demand: Demand
    bounds: Bounds
    corners: "tuple[Price, Price] | None" = None

    down_s = property(lambda self: self.demand.down_s)
    compute_s = property(lambda self: self.demand.work_s)
    up_s = property(lambda self: self.demand.up_s)
    seconds = property(lambda self: self.down_s + self.compute_s + self.up_s)
    energy = property(lambda self: Energy(*map(known, self.demand.energy().values())))

    def between(self, figure: "Callable[[Price], float | None]") -> Interval:
        """The bounds of a figure."""
        return Interval.of(*map(figure, self.corners or (self, self)))

    def energy_between(self) -> dict[str, Interval]:
        """The bounds of the energy by phase."""
        ends = self.corners or (self, self)
        found = {name: self.between(lambda one, of=name: getattr(one.energy, of)) for name in ENERGIES}
        return found | {"compute_j": above_idle_between(*(one.demand for one in ends))}


def priced(pricer: Pricer, cost: Cost, link: Link) -> Price:
    """A job's price."""
    here, *ends = (Price(one, pricer.time(cost)) for one in pricer.demands(cost, link))
    return replace(here, corners=tuple(ends)) if ends else here
