"""Totals of a run so far."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from edgefl.core.arrays import Floats
from edgefl.core.event import ENDINGS, EnergyTotal, Kind, joules

_MERGED = ENDINGS.index(Kind.MERGED)


class Totals(NamedTuple):
    """What all clients have moved, done and used."""

    down_bytes: int
    up_bytes: int
    flops: int
    energy: EnergyTotal


class Ledger:
    """Sums of jobs.

    Attributes:
        catch_up: called before sums are read: adds the jobs that ended and are not added yet.
    """

    def __init__(self, clients: int) -> None:
        self.catch_up: Callable[[], None] = lambda: None
        self._sums = (0, 0, 0)
        self._jobs = self._wasted_bytes = 0
        self._client_s = 0.0
        self._joules = np.zeros(clients)
        self._took_part = np.zeros(clients, dtype=bool)
        # The joules of clients whose energy is known, and how many clients those are.
        self._known_j, self._known = 0.0, 0

    def add(self, rows: np.ndarray) -> None:
        """Adds jobs, rows of ``JOB``; an unknown energy makes its client's sum unknown."""
        self._sums = self._with(rows)
        self._jobs += len(rows)
        self._client_s += float((rows["receive_s"] + rows["work_s"] + rows["transmit_s"]).sum())
        wasted = rows["ending"] != _MERGED
        self._wasted_bytes += sum(sum(rows[name][wasted].tolist()) for name in ("down_bytes", "up_bytes"))
        self.spend(rows["client"], joules(rows))

    def spend(self, clients: np.ndarray, spent_j: Floats) -> None:
        """Adds joules of clients, NaN for unknown ones; a client may occur more than once."""
        new = np.unique(clients[~self._took_part[clients]])
        self._took_part[new] = True
        self._known += len(new)
        unknown = np.unique(clients[np.isnan(spent_j)])
        unknown = unknown[~np.isnan(self._joules[unknown])]
        self._known -= len(unknown)
        self._known_j -= float(self._joules[unknown].sum())
        np.add.at(self._joules, clients, spent_j)
        self._known_j += float(spent_j[~np.isnan(self._joules[clients])].sum())

    def spent(self) -> dict[str, float | None]:
        """What the jobs that ended have cost; ``wasted_bytes`` are those of jobs that were not merged.

        ``client_s`` is the time spent receiving, working and sending, summed over jobs; ``joules`` are those
        of the clients whose energy is known in full, None where there are none.
        """
        self.catch_up()
        down_bytes, up_bytes, flops = self._sums
        return {
            "jobs": self._jobs,
            "down_bytes": down_bytes,
            "up_bytes": up_bytes,
            "flops": flops,
            "client_s": self._client_s,
            "wasted_bytes": self._wasted_bytes,
            "joules": self._known_j if self._known else None,
        }

    def totals(self, more: np.ndarray, open_j: Floats | float = 0.0) -> Totals:
        """The totals with what is not added: ``more`` jobs, and each client's joules of an open tail."""
        self.catch_up()
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
        # Python's integers: those of NumPy may be too short for the sums.
        sums = zip(self._sums, ("down_bytes", "up_bytes", "flops"), strict=True)
        down_bytes, up_bytes, flops = (before + sum(rows[name].tolist()) for before, name in sums)
        return down_bytes, up_bytes, flops
