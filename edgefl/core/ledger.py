"""Totals of a run: a fold over its events."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from edgefl.core.event import Event, Kind

# What was charged but reached no merge.
_WASTED = frozenset({Kind.LATE, Kind.LOST})


@dataclass(slots=True)
class Ledger:
    """Running totals.

    Attributes:
        t_s: the last event's time.
        events: how many there were.
        merges: server versions made.
        jobs: jobs dispatched.
        busy_s: seconds that clients worked or transferred, all together.
        down_bytes, up_bytes: traffic.
        flops: operations on clients.
        wasted_bytes: traffic of work that reached no merge.
        energy_unknown: clients with at least one charge of unknown energy.
        seen: clients with at least one charge.
    """

    t_s: float = 0.0
    events: int = 0
    merges: int = 0
    jobs: int = 0
    busy_s: float = 0.0
    down_bytes: int = 0
    up_bytes: int = 0
    flops: int = 0
    wasted_bytes: int = 0
    energy_unknown: set[int] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)
    _joules: dict[int, float] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        """Adds one event.

        Raises:
            ValueError: time fell.
        """
        if event.t_s < self.t_s:
            raise ValueError(f"time fell from {self.t_s} s to {event.t_s} s at event {event.seq}")
        self.t_s = event.t_s
        self.events += 1
        self.merges += event.kind is Kind.MERGED
        self.jobs += event.kind is Kind.DISPATCHED
        cost = event.cost
        self.busy_s += cost.seconds
        self.down_bytes += cost.down_bytes
        self.up_bytes += cost.up_bytes
        self.flops += cost.flops
        if event.kind in _WASTED:
            self.wasted_bytes += cost.down_bytes + cost.up_bytes
        if event.client >= 0 and event.kind is not Kind.REFUSED:
            self.seen.add(event.client)
            if cost.joules is None:
                self.energy_unknown.add(event.client)
            else:
                self._joules[event.client] = self._joules.get(event.client, 0.0) + cost.joules

    @property
    def joules(self) -> float | None:
        """The energy of the clients whose energy is known in full; None where there are none."""
        if not self.energy_known:
            return None
        return math.fsum(
            joules for client, joules in self._joules.items() if client not in self.energy_unknown
        )

    @property
    def energy_known(self) -> int:
        """Clients that took part and whose energy is known in full."""
        return len(self.seen) - len(self.energy_unknown)


def total(events: Iterable[Event]) -> Ledger:
    """The ledger of all events."""
    ledger = Ledger()
    for event in events:
        ledger.add(event)
    return ledger
