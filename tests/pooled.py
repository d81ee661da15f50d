"""Transfers moved by a pool, as ``exact_sharing.fluid`` moves them in fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from exact_sharing import Flow as Share
from exact_sharing import Limits, Transfer, exact

from edgefl.world.pool import Flow, Pool

# (the pool, the flows in it by their transfers' numbers, now): called after everything that happens.
Look = Callable[[Pool, Mapping[int, Flow], float], None]


@dataclass(frozen=True)
class Ended:
    """When a transfer ended, infinity if never, and what was left of it then."""

    end_s: float
    left: float


def pool_of(limits: Limits) -> Pool:
    """A pool with these capacities."""
    return Pool(float(limits.server), [float(cell) for cell in limits.cells])


def shares_of(flows: Mapping[int, Flow]) -> list[Share]:
    """The flows in a pool, for the oracle."""
    return [Share(exact(flow.limit_bps), flow.cell) for flow in flows.values()]


class Driver:
    """Brings beginnings, changes of caps and breaks to a pool at their times, and looks at it after each."""

    def __init__(self, limits: Limits, transfers: Sequence[Transfer], look: Look | None = None) -> None:
        self.pool, self.flows = pool_of(limits), {}
        self._transfers, self._look = transfers, look
        self._ended = [Ended(math.inf, float(one.size)) for one in transfers]

    def moved(self) -> list[Ended]:
        """What became of each transfer."""
        times = {when for one in self._transfers for when, _ in one.changes}
        times |= {when for one in self._transfers for when in (one.begin, one.broken_off) if when < math.inf}
        for now in map(float, sorted(times)):
            self._until(now)
            for place, one in enumerate(self._transfers):
                self._change(place, one, now)
        self._until(math.inf)
        return self._ended

    def _until(self, now: float) -> None:
        while (then := self.pool.next_s) <= now and self.flows:
            if math.isinf(then):
                break
            for flow in self.pool.finish():
                del self.flows[flow.owner]
                self._ended[flow.owner] = Ended(then, 0.0)
            self._looked(then)

    def _change(self, place: int, one: Transfer, now: float) -> None:
        if math.isfinite(self._ended[place].end_s) or now < one.begin:
            return
        cap = float(one.flow(now).cap)
        flow = self.flows.get(place)
        if now < one.broken_off and cap == (0.0 if flow is None else flow.limit_bps):
            return
        left = self._ended[place].left
        if flow is not None:
            left = self.pool.stop(self.flows.pop(place), now)
        self._ended[place] = Ended(now if now >= one.broken_off else math.inf, left)
        if now < one.broken_off and cap:
            self.flows[place] = Flow(place, cap, one.cell)
            self.pool.start(self.flows[place], left, now)
        self._looked(now)

    def _looked(self, now: float) -> None:
        if self._look is not None:
            self._look(self.pool, self.flows, now)
