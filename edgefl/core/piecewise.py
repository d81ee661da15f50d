"""Functions of time that are constant in pieces, such as the rate of a link and the intensity of a grid."""

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edgefl.core.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Piecewise:
    """What holds from ``t[i]`` until the next piece begins; times are in any unit.

    Attributes:
        t: when each piece begins, ascending from 0, (n,).
        value: of each piece, (n,).
        period: when the first piece begins again; inf where the last one lasts for ever.
    """

    t: Floats
    value: Floats
    period: float = math.inf

    def at(self, t: Floats) -> Floats:
        return self.value[self._places(t)[1]]

    def integral(self, t: Floats) -> Floats:
        """From 0 until some times."""
        turn, piece, within = self._places(t)
        found = self._before[piece] + self.value[piece] * (within - self.t[piece])
        return found if math.isinf(self.period) else turn * self._before[-1] + found

    def mean(self, start: Floats, end: Floats) -> Floats:
        """From some times to others; from a time to itself, the value there."""
        found = self.at(start)
        (turn, piece, _), (last_turn, last_piece, _) = self._places(start), self._places(end)
        over = np.flatnonzero((turn != last_turn) | (piece != last_piece))
        start, end = start[over], end[over]
        found[over] = (self.integral(end) - self.integral(start)) / (end - start)
        return found

    def when(self, integral: Floats) -> Floats:
        """The first times by which the integral, of values of at least 0, is so much; inf for never."""
        turn, rest = np.zeros(len(integral)), integral
        if np.isfinite(self._before[-1]):
            turn, rest = np.divmod(integral, self._before[-1])
        piece = np.maximum(np.searchsorted(self._before[:-1], rest) - 1, 0)
        value, more = self.value[piece], rest - self._before[piece]
        later = np.divide(more, value, out=np.where(more > 0, np.inf, 0.0), where=value > 0)
        found = self.t[piece] + later
        return found if math.isinf(self.period) else turn * self.period + found

    def until(self, t: float, offset: float) -> tuple[float, float]:
        """The value at one time, and until when it holds, of a function that is at ``t + offset``."""
        times, within = self.t, t + offset
        base = 0.0 if math.isinf(self.period) else math.floor(within / self.period) * self.period
        place = max(0, bisect_right(times, within - base) - 1)
        while True:
            last = place + 1 == len(times)
            until = base + (self.period if last else float(times[place + 1])) - offset
            # So late that a turn is below the resolution of time.
            is_late = base + self.period == base
            if until > t or is_late:
                return float(self.value[place]), max(until, math.nextafter(t, math.inf))
            # A change that rounding has put before now.
            base, place = (base + self.period, 0) if last else (base, place + 1)

    @cached_property
    def _before(self) -> Floats:
        """The integral until each piece begins, and until the first begins again, (n + 1,)."""
        until = np.append(0.0, np.cumsum(self.value[:-1] * np.diff(self.t)))
        last = self.value[-1] * (self.period - self.t[-1]) if np.isfinite(self.period) else np.inf
        return np.append(until, until[-1] + last)

    def _places(self, t: Floats) -> tuple[Floats, Ints, Floats]:
        """How often the pieces have begun again by some times, which one they are in, and the time within."""
        turn, within = np.divmod(t, self.period)
        return turn, np.searchsorted(self.t, within, side="right") - 1, within
