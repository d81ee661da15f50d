"""How far a run is: numbers that it has in hand, put together for its callbacks."""

import time
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType

from edgefl.core.plan import Plan
from edgefl.store.checkpoints import CheckpointPlace
from edgefl.trackers import Callbacks, Progress, What
from edgefl.world.ledger import Ledger

# The pace is that of so many merges and evaluations.
_MARKS = 64


class SoFar:
    """A run's progress.

    Attributes:
        ledger: what the jobs that ended have cost.
        engine: what trains, for ``Progress``.
        place: that of the last merge or evaluation.
    """

    def __init__(self, plan: Plan, callbacks: Callbacks) -> None:
        self._plan, self._callbacks = plan, callbacks
        self.ledger = Ledger(len(plan.clients))
        self.engine = ""
        self.place = CheckpointPlace(0, 0, evaluated=False, regular=True, round=-1, t_s=0.0)
        self.figures: Mapping[str, float] = {}
        # Wall seconds, and how much of each limit had been used up.
        self._marks: deque[tuple[float, list[float]]] = deque(maxlen=_MARKS)
        # Where nobody listens, nothing is reckoned.
        self._listens = getattr(callbacks.told, "__func__", None) is not Callbacks.told

    def tell(
        self, what: What, place: CheckpointPlace, new: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        """Tells what has happened at a place, and which figures it gave beside costs."""
        self.place = place
        costs, scenario = self._costs() if self._listens else {}, self._plan.scenario
        new = {**new, **{key: one for key, one in costs.items() if self.figures.get(key) != one}}
        self.figures = {**self.figures, **new}
        if not self._listens:
            return
        self._callbacks.told(
            Progress(
                name=scenario.name,
                what=what,
                engine=self.engine,
                version=place.version,
                round=place.round,
                rounds=scenario.server.until.rounds,
                t_s=place.t_s,
                left_s=0.0 if what == "over" else self._left_s(costs),
                figures=MappingProxyType(self.figures),
                new=MappingProxyType(new),
            )
        )

    def _costs(self) -> dict[str, float]:
        spent = {key: one for key, one in self.ledger.spent().items() if one is not None}
        found = {"virtual_s": self.place.t_s, "bytes": spent["down_bytes"] + spent["up_bytes"], **spent}
        found["wasted.bytes"] = found.pop("wasted_bytes")
        return found

    def _left_s(self, costs: Mapping[str, float]) -> float | None:
        """The wall time until the first limit is met, at the pace of the last merges; None without any."""
        if not self.place.version:
            return None
        until = self._plan.scenario.server.until
        limits = (until.rounds, until.time, until.bytes, until.energy)
        used = (self.place.round + 1, self.place.t_s, costs["bytes"], costs.get("joules", 0.0))
        shares = [one / limit if limit else 0.0 for one, limit in zip(used, limits, strict=True)]
        self._marks.append((time.perf_counter(), shares))
        (since_s, before), (now_s, _) = self._marks[0], self._marks[-1]
        gains = [(max(1 - now, 0.0), now - then) for now, then in zip(shares, before, strict=True)]
        return min((left * (now_s - since_s) / gain for left, gain in gains if gain > 0), default=None)
