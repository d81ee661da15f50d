"""How much sooner a run would have made its merges with other clients or links: the clock runs once more.

Of a run that is blind to time (``edgefl.world.blind``), that is what a new run with the change takes. Where
other times change who is asked or merged, the other run makes as many merges, may also take longer, and
learns something else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from edgefl.core.arrays import Floats
from edgefl.core.availability.charging import Charging
from edgefl.core.errors import RunError
from edgefl.core.fleet import Cell
from edgefl.core.plan import COLUMNS, Plan
from edgefl.core.samplers.fixed import Params as Fixed
from edgefl.planning.medians import Changes, Medians
from edgefl.world.needs import Feedback, Merge

Progress = Callable[[str, int, int], None]
MEDIAN = ("link", "device", "work")
OF_CLIENTS = (*MEDIAN, "slowdown")
"""The changes that can be made to one client: the fleet's median link, device or work; no slowdown."""
CHANGES = (*OF_CLIENTS, "jitter")
"""Those that can be made to all clients; the last is no jitter, that which makes work quicker included."""
_SHOWN_EVERY = 64
# Sums of the same times in another order differ by as much.
_ROUNDING = 1e-12


class Again:
    """A run's time with changes.

    Attributes:
        changes: ``CHANGES``, and those of what is shared: "server" is the server's link, and "cells" are all
            cells, twice as fast; "unshared" is neither limited.
        runs: how often the clock runs, for all clients and for some.
    """

    def __init__(
        self, plan: Plan, medians: Medians, merged_s: Floats, clients: int, progress: Progress
    ) -> None:
        """Takes a run with its merges' times, (n,), and how many clients' savings are asked for."""
        self._plan, self._medians, self._merged_s, self._progress = plan, medians, merged_s, progress
        self._shared = _with_shared(plan)
        self.changes = (*CHANGES, *self._shared)
        # Once as it was, and once for each change.
        self.runs = 1 + len(self.changes) + len(OF_CLIENTS) * clients
        self._done = 0

    def is_known(self) -> bool:
        """Whether the world does again what the run did.

        It does where work was traced, no selector saw losses that are not there now, no work fits into a
        time, and no battery or energy has a say, which other prices would change too.
        """
        plan = self._plan
        timetable = plan.fleet.availability.timetable(plan.clients, plan.scenario.seed)
        sees_energy = plan.scenario.server.until.energy is not None or isinstance(timetable, Charging)
        traced = all(prices.traces for prices in plan.prices)
        could = traced and not sees_energy and plan.scenario.local.fit is None
        return could and self._run(plan, same=True) is not None

    def saved_s(self, client: int | None = None) -> dict[str, float]:
        """By how many seconds as many merges would be made sooner, by change to one client, or to all (None).

        A change is left out if there would not be as many merges. A device that throttles otherwise, or not
        at all, would do so after the change, which is not known; nor are the rates of another link among
        traces.
        """
        fleet, now_s = self._plan.fleet, float(self._merged_s[-1])
        unknown = {"device": bool(fleet.speed), "link": any(link.trace for link in fleet.links.values())}
        found = {}
        for change in self.changes if client is None else OF_CLIENTS:
            changed = None if unknown.get(change) else self._changed(change, client)
            t_s = self._run(changed) if changed else None
            if t_s is not None:
                found[change] = 0.0 if math.isclose(t_s, now_s, rel_tol=_ROUNDING) else now_s - t_s
        return found

    def _changed(self, change: str, client: int | None) -> Plan:
        plan = self._plan
        if change in MEDIAN:
            return _repriced(plan, self._of_kinds[change], client)
        if change == "slowdown":
            who = slice(None) if client is None else client
            slowdown = plan.clients.slowdown.copy()
            slowdown[who] = np.minimum(slowdown[who], 1.0)
            return replace(plan, clients=replace(plan.clients, slowdown=slowdown))
        if change == "jitter":
            return replace(plan, fleet=plan.fleet.model_copy(update={"jitter": Fixed()}))
        return self._shared[change]

    @cached_property
    def _of_kinds(self) -> Mapping[str, Changes]:
        return {change: getattr(self._medians, change)() for change in MEDIAN}

    def _run(self, plan: Plan, *, same: bool = False) -> float | None:
        """When a plan's run makes as many merges; None if it does not, or not at the ``same`` times."""
        # Loads SimPy, which nothing else here needs.
        from edgefl.world.driver import simulate

        world, merged_s, merges = simulate(plan), self._merged_s.tolist(), 0
        total = len(merged_s) * self.runs
        try:
            need = next(world)
            while True:
                if isinstance(need, Merge):
                    if same and need.t_s != merged_s[merges]:
                        return None
                    merges += 1
                    if merges % _SHOWN_EVERY == 0:
                        self._progress("running the clock again", self._done + merges, total)
                    if merges == len(merged_s):
                        return need.t_s
                need = world.send(Feedback())
        except (StopIteration, RunError):
            return None
        finally:
            self._done += len(merged_s)
            world.close()


def _repriced(plan: Plan, changes: Changes, client: int | None) -> Plan:
    """A plan with other prices for all kinds that change, or for one client, as a kind of its own."""
    clients, kind = plan.clients, 0 if client is None else int(plan.clients.kind[client])
    kinds = changes if client is None else {-1: changes[kind]} if kind in changes else {}
    prices = []
    for place, one in enumerate(plan.prices):
        columns: dict[str, Any] = {
            name: np.append(getattr(one, name), getattr(one, name)[kind]) for name in COLUMNS
        }
        for row, values in kinds.items():
            for name, value in values[place].items():
                columns[name][row] = value
        prices.append(replace(one, corners=None, **columns))
    if client is not None:
        own = clients.kind.copy()
        own[client] = len(prices[0].work_s) - 1
        clients = replace(clients, kind=own)
    return replace(plan, clients=clients, prices=tuple(prices))


def _with_shared(plan: Plan) -> dict[str, Plan]:
    """The plan with each change of what clients share, if they do: at twice the rates, or without limits."""
    server, found = plan.scenario.server, {}
    limits = {"uplink": server.uplink, "downlink": server.downlink}
    rates = {way: rate for way, rate in limits.items() if rate is not None}

    def limited(update: Mapping[str, float | None]) -> Plan:
        scenario = plan.scenario.model_copy(update={"server": server.model_copy(update=update)})
        return replace(plan, scenario=scenario)

    if rates:
        found["server"] = limited({way: 2 * rate for way, rate in rates.items()})
    if plan.clients.cells:
        cells = {name: _twice(cell) for name, cell in plan.fleet.cells.items()}
        found["cells"] = replace(plan, fleet=plan.fleet.model_copy(update={"cells": cells}))
    if found:
        alone = replace(plan.clients, cell=np.full(len(plan.clients), -1), cells=())
        found["unshared"] = replace(limited(dict.fromkeys(rates)), clients=alone)
    return found


def _twice(cell: Cell) -> Cell:
    rates = {"down": cell.down, "up": cell.up}
    faster = {way: rate.model_copy(update={"value": 2 * (rate.value or 0.0)}) for way, rate in rates.items()}
    return cell.model_copy(update=faster)
