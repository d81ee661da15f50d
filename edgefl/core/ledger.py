"""Totals: of a run so far, and of energies of which some are unknown."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from edgefl.core.event import Event, Kind


class EnergyTotal(NamedTuple):
    """A sum over clients, and how many clients it covers.

    Attributes:
        joules: of the clients whose energy is known in full; None where there are none.
        energy_known: how many clients those are.
        energy_clients: how many clients took part.
    """

    joules: float | None
    energy_known: int
    energy_clients: int


def total_energy(by_client: Iterable[float | None]) -> EnergyTotal:
    """The total over clients.

    Args:
        by_client: each client's joules; None where any of its charges is unknown.
    """
    clients = list(by_client)
    known = [joules for joules in clients if joules is not None]
    return EnergyTotal(math.fsum(known) if known else None, len(known), len(clients))


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
