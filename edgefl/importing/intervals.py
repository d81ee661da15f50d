"""Gathers users' intervals, and counts what of them cannot be used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from edgefl.core.errors import UserError
from edgefl.core.units import show_count
from edgefl.importing.trace import UserIntervals


class Gathered:
    """The intervals of one user after another.

    Attributes:
        users: how many there are.
        never: how many of them have no interval.
    """

    def __init__(self, repeat_s: float) -> None:
        """Intervals that repeat after ``repeat_s`` seconds."""
        self._repeat_s = repeat_s
        self._rows: list[tuple[int, float, float]] = []
        self._unusable = self._beyond = self._open = 0
        self.users = self.never = 0

    def add(self, starts: Sequence[float], ends: Sequence[float]) -> None:
        """A user's intervals: the i-th lasts from the i-th start to the i-th end.

        An interval that has not ended lasts until the period's end if it is the last to begin. What lies
        outside the period is cut off, intervals that touch are one, and those that are empty are left out.
        """
        pairs: list[tuple[float, float]] = []
        last = max(starts, default=0.0)
        for start, end in zip_longest(starts, ends):
            if end is None and start == last and 0 <= start < self._repeat_s:
                self._open += 1
                pairs.append((start, self._repeat_s))
                continue
            if start is None or end is None or not (math.isfinite(start) and start < end):
                self._unusable += 1
                continue
            within = max(start, 0.0), min(end, self._repeat_s)
            self._beyond += within != (start, end)
            if within[0] < within[1]:
                pairs.append(within)
        joined = _joined(pairs)
        self.never += not joined
        self._rows += [(self.users, *pair) for pair in joined]
        self.users += 1

    @property
    def read(self) -> list[str]:
        """What was made of them, a sentence each."""
        told = {
            f"{show_count(self._open, 'interval')} without an end: until the end of the period": self._open,
            f"{show_count(self.never, 'user')} never available": self.never,
        }
        return [sentence for sentence, count in told.items() if count]

    @property
    def dropped(self) -> list[str]:
        """What of them is lost, a sentence each."""
        told = {
            f"{show_count(self._unusable, 'interval')} without a start or a later end": (self._unusable),
            f"the parts of {show_count(self._beyond, 'interval')} outside the period": self._beyond,
        }
        return [sentence for sentence, count in told.items() if count]

    def intervals(self, file: str) -> UserIntervals:
        """All of them.

        Raises:
            UserError: there are none.
        """
        if not self._rows:
            raise UserError("no user is ever available", where=file)
        user, start, end = zip(*self._rows, strict=True)
        return UserIntervals(np.array(user), np.array(start, float), np.array(end, float), self._repeat_s)


def _joined(pairs: list[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for start, end in sorted(pairs):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found
