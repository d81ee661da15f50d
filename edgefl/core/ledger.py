"""Totals: of a run so far, and of energies of which some are unknown."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from edgefl.core.draws import Floats
from edgefl.core.event import JOULES


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


def total(*joules: float | None) -> float | None:
    """The sum; None if a term is unknown."""
    terms = [term for term in joules if term is not None]
    return sum(terms) if len(terms) == len(joules) else None


def known(figure: float | None) -> float | None:
    """A figure of an array, where NaN stands for an unknown one; None for that."""
    return None if figure is None or math.isnan(figure) else float(figure)


class Totals(NamedTuple):
    """What all clients have moved, done and used.

    Attributes:
        down_bytes, up_bytes: traffic.
        flops: operations.
        energy: joules.
    """

    down_bytes: int
    up_bytes: int
    flops: int
    energy: EnergyTotal


class Ledger:
    """Sums of jobs."""

    def __init__(self, clients: int) -> None:
        self._sums = (0, 0, 0)
        self._joules = np.zeros(clients)
        self._took_part = np.zeros(clients, dtype=bool)

    def add(self, rows: np.ndarray) -> None:
        """Adds jobs, rows of ``JOB``; an unknown energy makes its client's sum unknown."""
        self._sums = self._with(rows)
        np.add.at(self._joules, rows["client"], joules(rows))
        self._took_part[rows["client"]] = True

    def totals(self, more: np.ndarray, open_j: Floats | float = 0.0) -> Totals:
        """The totals with what is not added: ``more`` jobs, and each client's joules of an open tail."""
        by_client, took_part = self._joules + open_j, self._took_part
        if len(more):
            took_part = took_part.copy()
            np.add.at(by_client, more["client"], joules(more))
            took_part[more["client"]] = True
        each = by_client[took_part]
        of_known = each[~np.isnan(each)]
        whole = math.fsum(of_known.tolist()) if len(of_known) else None
        return Totals(*self._with(more), EnergyTotal(whole, len(of_known), len(each)))

    def _with(self, rows: np.ndarray) -> tuple[int, int, int]:
        down_bytes, up_bytes, flops = self._sums
        return (
            down_bytes + _sum(rows["down_bytes"]),
            up_bytes + _sum(rows["up_bytes"]),
            flops + _sum(rows["flops"]),
        )


def joules(rows: np.ndarray) -> Floats:
    """Each job's energy; NaN where a part is unknown."""
    total: Floats = sum((rows[name] for name in JOULES[1:]), rows[JOULES[0]])
    return total


def _sum(counts: np.ndarray) -> int:
    """The sum of 64-bit integers, which need not fit into one."""
    high, low = (counts >> 32).sum(), (counts & 0xFFFFFFFF).sum()
    return (int(high) << 32) + int(low)
