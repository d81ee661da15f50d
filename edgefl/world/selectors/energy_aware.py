"""Clients by what is left in their batteries: in proportion to the level squared, above a minimum.

That clients are weighted by remaining energy is the idea of EAFL (Arouj and Abdelmoniem 2022, "Towards
energy-aware federated learning on battery-powered clients"); the square and the minimum are assumed. If too
few clients are above the minimum, the fullest of the others are asked too.
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from edgefl.core import draws
from edgefl.core.arrays import Ints
from edgefl.core.availability.charging import Charging
from edgefl.core.errors import ScenarioError
from edgefl.core.params import NonNegative
from edgefl.core.plan import Plan
from edgefl.world.selectors import Draws, Selector, SelectorParams, lowest
from edgefl.world.world import World


class Params(SelectorParams):
    power: Annotated[NonNegative, Field(description="a client's weight is its level to this power")] = 2.0
    minimum: Annotated[float, Field(ge=0, le=1, description="level below which a client is spared")] = 0.3

    def check(self, plan: Plan) -> None:
        timetable = plan.fleet.availability.timetable(plan.clients, plan.scenario.seed)
        if not isinstance(timetable, Charging):
            raise ScenarioError(
                "the selector 'energy-aware' asks clients by their batteries, and this fleet has none",
                where="server.selector",
                hint="give the fleet 'availability: charging', or choose another selector",
            )

    def build(self, world: World) -> Selector:
        return _EnergyAware(self, world)


class _EnergyAware(Selector):
    def __init__(self, params: Params, world: World) -> None:
        self._params = params
        self._world = world
        self._draws = Draws(world, "energy")

    def select(self, count: int, candidates: Ints) -> Ints:
        level = self._world.battery(candidates)
        fit = level >= self._params.minimum
        charged = candidates[fit]
        missing = count - len(charged)
        if missing > 0:
            spared = candidates[~fit]
            return np.sort(np.concatenate([charged, lowest(-level[~fit], spared, missing)]))
        places = draws.sample(self._draws.next(charged), level[fit] ** self._params.power, count)
        return np.sort(charged[places])
