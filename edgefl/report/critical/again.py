"""How much sooner a run would have made its merges with other clients: the world is run again, untrained.

For runs in which other times change who is asked or merged. With the same number of merges, the other run may
also take longer, and it learns something else.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edgefl.core.availability import BatteryTimetable
from edgefl.core.errors import RunError
from edgefl.core.plan import Plan
from edgefl.core.samplers.fixed import Params as Fixed
from edgefl.planning.medians import Medians
from edgefl.world.needs import Feedback, Merge


class Again:
    """A run's time with changes that are made to all clients.

    Attributes:
        is_known: whether the world does again what the run did: no selector saw losses that are not there
            now, no work fits into a time, and no battery or energy has a say, which other prices would
            change too.
    """

    def __init__(self, plan: Plan, medians: Medians, merges: int, t_s: float) -> None:
        """Runs the world as it was.

        Args:
            plan: the run's.
            medians: those of its fleet.
            merges: how many it made.
            t_s: when it made the last one, in virtual seconds.
        """
        self._plan, self._medians, self._merges, self._t_s = plan, medians, merges, t_s
        timetable = plan.fleet.availability.timetable(plan.clients, plan.scenario.seed)
        sees_energy = plan.scenario.server.until.energy is not None or isinstance(timetable, BatteryTimetable)
        self.is_known = not sees_energy and plan.scenario.local.fit is None and self._run(plan) == t_s

    def saved_s(self, change: str) -> float | None:
        """By how many seconds as many merges would be made sooner; None where there would not be as many.

        A device that throttles otherwise, or not at all, would do so after the change, which is not known.
        """
        if change == "device" and self._plan.fleet.speed:
            return None
        t_s = self._run(self._changed(change))
        return None if t_s is None else self._t_s - t_s

    def _changed(self, change: str) -> Plan:
        if change != "speed":
            median = getattr(self._medians, change)()
            return replace(self._plan, prices=median.prices)
        # Jitter below 1, which makes work quicker, is left out too.
        slowdown = np.minimum(self._plan.clients.slowdown, 1.0)
        fleet = self._plan.fleet.model_copy(update={"jitter": Fixed()})
        return replace(self._plan, clients=replace(self._plan.clients, slowdown=slowdown), fleet=fleet)

    def _run(self, plan: Plan) -> float | None:
        """When a plan's run makes as many merges; None if it does not."""
        # Loads SimPy, which nothing else here needs.
        from edgefl.world.driver import simulate

        world, merges = simulate(plan), 0
        try:
            need = next(world)
            while True:
                merges += isinstance(need, Merge)
                if merges == self._merges:
                    return need.t_s
                need = world.send(Feedback())
        except (StopIteration, RunError):
            return None
        finally:
            world.close()
