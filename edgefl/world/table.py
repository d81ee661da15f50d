"""The jobs that have not ended, in one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from edgefl.core.draws import Floats
from edgefl.core.event import JOB
from edgefl.core.plan import Bools, Ints

Rows: TypeAlias = np.ndarray
"""Rows of ``LIVE``."""

LIVE = np.dtype([
    *((name, JOB[name]) for name in JOB.names or ()),
    ("kind", np.int64), ("sends", np.int64), ("lost", np.int64),
    ("down_s", np.float64), ("amount_s", np.float64), ("up_s", np.float64), ("due_s", np.float64),
    ("there_s", np.float64), ("next_s", np.float64), ("tail_since_s", np.float64), ("tail_job", np.int64),
])  # fmt: skip
"""``JOB``, and what is known of a job beforehand.

Its client's kind, how often its upload is sent, whether it will be lost on its own; the seconds of its
download, of its work at full speed and of all its uploads; when it arrives or is lost: infinite while that is
not known; until when its client, which is available at the dispatch, stays at least; when the client is
dispatched again, infinite while it is not; and since when a tail of the client's radio was open at the
dispatch, minus infinity for none, and the job that left it open.
"""


# Whole rows as bytes: NumPy copies a row with fields one field after another.
_WHOLE = np.dtype(f"V{LIVE.itemsize}")


def taken(rows: Rows, at: Ints | Bools) -> Rows:
    """``rows[at]``, many times as fast."""
    return np.ascontiguousarray(rows).view(_WHOLE)[at].view(LIVE)


def stacked(each: Sequence[Rows]) -> Rows:
    """``np.concatenate``, many times as fast."""
    return np.concatenate([np.ascontiguousarray(rows).view(_WHOLE) for rows in each]).view(LIVE)


class Table:
    """Rows of ``LIVE`` in slots that are used again."""

    def __init__(self, curves: int) -> None:
        """Starts empty; ``curves`` is the number of states that a job's client has at its dispatch."""
        self.rows = np.zeros(64, dtype=LIVE)
        self.states = np.zeros((64, curves))
        self._free = np.arange(64)[::-1].copy()
        self._count = 64

    @property
    def in_use(self) -> int:
        """How many jobs there are."""
        return len(self.rows) - self._count

    def open(self) -> Ints:
        """The slots of jobs that have not ended, by job."""
        if not self.in_use:
            return self._free[:0]
        taken = np.ones(len(self.rows), dtype=bool)
        taken[self._free[: self._count]] = False
        slots = np.flatnonzero(taken)
        return slots[np.argsort(self.rows["job"][slots])]

    def take(self, slots: Ints) -> Rows:
        """Copies of the rows in slots."""
        return taken(self.rows, slots)

    def set(self, slots: Ints, rows: Rows) -> None:
        """Replaces the rows in slots."""
        self.rows.view(_WHOLE)[slots] = rows.view(_WHOLE)

    def put(self, rows: Rows, states: Floats) -> Ints:
        """Adds jobs; returns their slots."""
        while self._count < len(rows):
            self._grow()
        self._count -= len(rows)
        slots = self._free[self._count : self._count + len(rows)][::-1].copy()
        self.set(slots, rows)
        self.states[slots] = states
        return slots

    def free(self, slots: Ints) -> None:
        """Frees the slots of jobs that ended; their rows can be read until the slots are used again."""
        self._free[self._count : self._count + len(slots)] = slots[::-1]
        self._count += len(slots)

    def _grow(self) -> None:
        size = len(self.rows)
        self.rows = stacked([self.rows, np.zeros(size, dtype=LIVE)])
        self.states = np.concatenate([self.states, np.zeros_like(self.states)])
        free = np.empty(2 * size, dtype=self._free.dtype)
        free[:size] = np.arange(2 * size - 1, size - 1, -1)
        free[size : size + self._count] = self._free[: self._count]
        self._free, self._count = free, self._count + size
