"""A run's totals so far, summed over its events."""

from __future__ import annotations

from dataclasses import dataclass, field

from edgefl.core.energy import EnergyTotal, total_energy
from edgefl.core.event import Event, Kind


@dataclass(slots=True)
class Ledger:
    """Running totals.

    Attributes:
        t_s: the last event's time.
        down_bytes, up_bytes: traffic of all clients.
        joules_by_client: of clients with at least one charge; None if one of its charges is unknown.
    """

    t_s: float = 0.0
    down_bytes: int = 0
    up_bytes: int = 0
    joules_by_client: dict[int, float | None] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        """Adds one event.

        Raises:
            ValueError: its time is before the last event's.
        """
        if event.t_s < self.t_s:
            raise ValueError(f"time fell from {self.t_s} s to {event.t_s} s at event {event.seq}")
        self.t_s = event.t_s
        cost = event.cost
        self.down_bytes += cost.down_bytes
        self.up_bytes += cost.up_bytes
        if event.client >= 0 and event.kind is not Kind.REFUSED:
            before, joules = self.joules_by_client.get(event.client, 0.0), cost.joules
            self.joules_by_client[event.client] = (
                None if before is None or joules is None else before + joules
            )

    @property
    def energy(self) -> EnergyTotal:
        """The energy of all clients."""
        return total_energy(self.joules_by_client.values())
