"""How much sooner a run would have made its merges with other clients or links: the clock runs once more.

For runs in which other times change who is asked or merged. With the same number of merges, the other run may
also take longer, and it learns something else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from edgefl.analysis.explain.savings import CHANGES
from edgefl.analysis.timeline import Floats
from edgefl.core.availability import BatteryTimetable
from edgefl.core.errors import RunError
from edgefl.core.fleet import Cell
from edgefl.core.plan import Plan
from edgefl.core.samplers.fixed import Params as Fixed
from edgefl.planning.medians import Medians
from edgefl.world.needs import Feedback, Merge

Progress = Callable[[str, int, int], None]
_SHOWN_EVERY = 64
# Sums of the same times in another order differ by as much.
_ROUNDING = 1e-12


class Again:
    """A run's time with changes that are made to all clients, or to what they share.

    Attributes:
        changes: ``CHANGES``, and those of what is shared: "server" is the server's link, and "cells" are all
            cells, twice as fast; "unshared" is neither limited.
        is_known: whether the world does again what the run did: no selector saw losses that are not there
            now, no work fits into a time, and no battery or energy has a say, which other prices would
            change too.
    """

    def __init__(self, plan: Plan, medians: Medians, merged_s: Floats, progress: Progress) -> None:
        """Runs the world as it was, as long as it does what the run did.

        Args:
            plan: the run's.
            medians: those of its fleet.
            merged_s: when it made its merges, in virtual seconds, (n,).
            progress: called with what is done, how many merges were made, and how many there are.
        """
        self._plan, self._medians, self._merged_s, self._progress = plan, medians, merged_s, progress
        # Once as it was, and once for each change.
        self.changes = (*CHANGES, *_of_shared(plan))
        self._done, self._total = 0, len(merged_s) * (1 + len(self.changes))
        timetable = plan.fleet.availability.timetable(plan.clients, plan.scenario.seed)
        sees_energy = plan.scenario.server.until.energy is not None or isinstance(timetable, BatteryTimetable)
        self.is_known = (
            not sees_energy and plan.scenario.local.fit is None and self._run(plan, same=True) is not None
        )

    def saved_s(self, change: str) -> float | None:
        """By how many seconds as many merges would be made sooner; None where there would not be as many.

        A device that throttles otherwise, or not at all, would do so after the change, which is not known. So
        are the rates of another link where links follow traces.
        """
        fleet = self._plan.fleet
        if change == "device" and fleet.speed:
            return None
        if change == "link" and any(link.trace for link in fleet.links.values()):
            return None
        now_s, t_s = float(self._merged_s[-1]), self._run(self._changed(change))
        if t_s is None:
            return None
        return 0.0 if math.isclose(t_s, now_s, rel_tol=_ROUNDING) else now_s - t_s

    def _changed(self, change: str) -> Plan:
        if change not in CHANGES:
            return _with_shared(self._plan, change)
        if change != "speed":
            median = getattr(self._medians, change)()
            return replace(self._plan, prices=median.prices)
        # Jitter below 1, which makes work quicker, is left out too.
        slowdown = np.minimum(self._plan.clients.slowdown, 1.0)
        fleet = self._plan.fleet.model_copy(update={"jitter": Fixed()})
        return replace(self._plan, clients=replace(self._plan.clients, slowdown=slowdown), fleet=fleet)

    def _run(self, plan: Plan, *, same: bool = False) -> float | None:
        """When a plan's run makes as many merges; None if it does not, or not at the ``same`` times."""
        # Loads SimPy, which nothing else here needs.
        from edgefl.world.driver import simulate

        world, merged_s, merges = simulate(plan), self._merged_s.tolist(), 0
        try:
            need = next(world)
            while True:
                if isinstance(need, Merge):
                    if same and need.t_s != merged_s[merges]:
                        return None
                    merges += 1
                    if merges % _SHOWN_EVERY == 0:
                        self._progress("running the clock again", self._done + merges, self._total)
                    if merges == len(merged_s):
                        return need.t_s
                need = world.send(Feedback())
        except (StopIteration, RunError):
            return None
        finally:
            self._done += len(merged_s)
            world.close()


def _of_shared(plan: Plan) -> list[str]:
    """The changes of what clients share."""
    there = {"server": bool(_server_rates(plan)), "cells": bool(plan.clients.cells)}
    found = [change for change, is_there in there.items() if is_there]
    return [*found, "unshared"] if found else []


def _server_rates(plan: Plan) -> dict[str, float]:
    """The rates of the server's link, in the directions in which it is limited."""
    server = plan.scenario.server
    rates = {"uplink": server.uplink, "downlink": server.downlink}
    return {way: rate for way, rate in rates.items() if rate is not None}


def _with_shared(plan: Plan, change: str) -> Plan:
    """The plan with a change of what clients share."""
    if change == "cells":
        cells = {name: _twice(cell) for name, cell in plan.fleet.cells.items()}
        return replace(plan, fleet=plan.fleet.model_copy(update={"cells": cells}))
    unshared = change == "unshared"
    rates = {way: None if unshared else 2 * rate for way, rate in _server_rates(plan).items()}
    server = plan.scenario.server.model_copy(update=rates)
    changed = replace(plan, scenario=plan.scenario.model_copy(update={"server": server}))
    if not unshared:
        return changed
    alone = np.full(len(plan.clients), -1)
    return replace(changed, clients=replace(plan.clients, cell=alone, cells=()))


def _twice(cell: Cell) -> Cell:
    rates = {"down": cell.down, "up": cell.up}
    faster = {way: rate.model_copy(update={"value": 2 * (rate.value or 0.0)}) for way, rate in rates.items()}
    return cell.model_copy(update=faster)
