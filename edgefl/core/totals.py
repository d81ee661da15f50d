"""Sums of energies of which some are unknown."""

import math
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


def known(figure: float | None) -> float | None:
    """A figure of an array, where NaN stands for an unknown one; None for that."""
    return None if figure is None or math.isnan(figure) else float(figure)
