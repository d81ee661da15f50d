"""The energy of several clients together, where some clients' is unknown."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple


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
