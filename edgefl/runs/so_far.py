"""How far a run is: numbers that it has in hand, put together for its callbacks."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from edgefl.core.ledger import Ledger
from edgefl.core.plan import Plan
from edgefl.runs.callbacks import Callbacks, Progress
from edgefl.store import Place

# More of a run's marks are thinned out.
_MARKS = 256


class TimeLeft:
    """An estimate of a run's wall time, from its pace in the latter half of the time so far.

    Time is counted from the first merge, which may have waited for workers and kernels to load.
    """

    def __init__(self) -> None:
        self._at_s: list[float] = []
        self._shares: list[dict[str, float]] = []

    def estimated(self, now_s: float, shares: Mapping[str, float]) -> float | None:
        """The seconds left until the first limit is met; None while there is no pace.

        Args:
            now_s: wall seconds since any moment.
            shares: by limit, how much of it has been used up; 1 is all.
        """
        left_s = None
        if self._at_s:
            half_s = (self._at_s[0] + now_s) / 2
            place = max(bisect_right(self._at_s, half_s) - 1, 0)
            since_s, before = now_s - self._at_s[place], self._shares[place]
            gained = {limit: share - before[limit] for limit, share in shares.items()}
            left_s = min(
                (max(1 - shares[limit], 0.0) * since_s / gain for limit, gain in gained.items() if gain > 0),
                default=None,
            )
        self._at_s.append(now_s)
        self._shares.append(dict(shares))
        if len(self._at_s) > _MARKS:
            del self._at_s[1::2], self._shares[1::2]
        return left_s


@dataclass
class SoFar:
    """A run's progress.

    Attributes:
        plan: the run's.
        callbacks: told of it.
        ledger: what the jobs that ended have cost.
    """

    plan: Plan
    callbacks: Callbacks
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = Ledger(len(self.plan.clients))
        self._version, self._round, self._t_s = 0, -1, 0.0
        self._loss: float | None = None
        self._accuracies: dict[str, float] = {}
        self._losses: dict[str, float] = {}
        self._left = TimeLeft()
        # Where nobody listens, nothing is reckoned.
        told = getattr(self.callbacks.progressed, "__func__", None)
        self._told = told is not Callbacks.progressed

    def merged(self, version: int, round_: int, t_s: float, loss: float | None) -> None:
        """The server merged; the loss is that of training, None where nothing reports one."""
        self._version, self._round, self._t_s = version, round_, t_s
        self._loss = self._loss if loss is None else loss
        self.callbacks.merged(round_, t_s, loss)
        self._tell()

    def evaluated(self, t_s: float, accuracies: dict[str, float], losses: dict[str, float]) -> None:
        """A version was evaluated; both are by model."""
        self._t_s, self._accuracies, self._losses = t_s, accuracies, losses
        self.callbacks.evaluated(accuracies)
        self._tell()

    def resumed(
        self, place: Place, accuracies: dict[str, float], losses: dict[str, float], loss: float | None
    ) -> None:
        """The run goes on from a checkpoint; the others are as they were there."""
        self._version, self._round, self._t_s = place.version, place.round, place.t_s
        self._accuracies, self._losses, self._loss = accuracies, losses, loss

    def over(self, t_s: float) -> None:
        """All is over, and jobs that were in flight have been cut."""
        self._t_s = t_s
        self._tell(over=True)

    def _tell(self, *, over: bool = False) -> None:
        if not self._told:
            return
        spent = self.ledger.spent()
        moved = spent.down_bytes + spent.up_bytes
        shares = self._shares(moved, spent.joules)
        self.callbacks.progressed(
            Progress(
                name=self.plan.scenario.name,
                version=self._version,
                round=self._round,
                rounds=self.plan.scenario.server.until.rounds,
                t_s=self._t_s,
                **spent._asdict(),
                wasted_share=spent.wasted_bytes / moved if moved else None,
                accuracies=self._accuracies,
                losses=self._losses,
                loss=self._loss,
                left_s=0.0 if over else self._left.estimated(time.perf_counter(), shares),
            )
        )

    def _shares(self, moved: int, joules: float | None) -> dict[str, float]:
        """How much of each limit has been used up."""
        until = self.plan.scenario.server.until
        used = {
            "rounds": max(self._round + 1, 0),
            "time": self._t_s,
            "bytes": moved,
            "energy": joules or 0.0,
        }
        limits = {name: getattr(until, name) for name in used}
        return {name: used[name] / limit for name, limit in limits.items() if limit is not None}
