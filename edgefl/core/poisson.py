"""Poisson processes of many clients, looked up at any time without being stored.

Time is cut into windows, about one event long. The events of a client's window are hashes of the window's
number (``edgefl.core.draws``): how many there are, by inversion of the Poisson distribution, and where each
lies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from edgefl.core.arrays import Floats, Ints
from edgefl.core.draws import key, uniform, uniforms

# (clients (n,), t_s (n,)) -> the share of events at these times that are kept, (n,).
Thinning = Callable[[Ints, Floats], Floats]

# Once in 30,000 years: so rare events never happen, and times stay small beside the number of windows.
_RARE_PER_S = 1e-12
# More events of a window, of at most 1.42 in the mean, than the draws' resolution of 2**-53 lets appear.
_MOST = 20


class Poisson:
    """The events of one Poisson process for each client, at all times from minus to plus infinity.

    Attributes:
        per_s: each client's rate in events a second, (clients,); 0, as any below 1e-12, is never.
    """

    def __init__(self, root: int, purpose: str, per_s: Floats, kept: Thinning | None = None) -> None:
        """Processes of their own for each root and purpose.

        Args:
            root: the run's seed.
            purpose: what the events are.
            per_s: see above; with ``kept``, the rate before events are taken out.
            kept: makes the rate vary: an event is kept with this probability (Lewis and Shedler 1979).
        """
        self.per_s = np.where(per_s < _RARE_PER_S, 0.0, per_s)
        self._kept = kept
        self._key = key(root, purpose)
        self._streams = [key(root, purpose, str(place)) for place in range(_MOST)]
        some = self.per_s > 0
        # Powers of two, so that t / window and window * number are exact and no event is lost on an edge.
        self._window_s = np.exp2(np.round(-np.log2(np.where(some, self.per_s, 1.0))))
        self._none = np.exp(-self.per_s * self._window_s)

    def nearest(self, clients: Ints, t_s: Floats, way: int) -> Floats:
        """Of each client, (n,): its last event at or before a time (``way`` -1), or its first after it (1).

        Minus infinity or infinity if there is none.
        """
        found = np.full(len(clients), way * np.inf)
        left = np.flatnonzero(self.per_s[clients] > 0)
        window = np.floor(t_s[left] / self._window_s[clients[left]]).astype(np.int64)
        nearer = np.minimum if way > 0 else np.maximum
        while len(left):
            best = np.full(len(left), way * np.inf)
            for rows, times in self._events(clients[left], window):
                mine = (times > t_s[left[rows]]) == (way > 0)
                best[rows[mine]] = nearer(best[rows[mine]], times[mine])
            done = np.isfinite(best)
            found[left[done]] = best[done]
            left, window = left[~done], window[~done] + way
        return found

    def nearest_of(self, client: int, t_s: float, way: int) -> float:
        """As ``nearest``, of one client, 20 times as fast as with arrays of one."""
        per_s, best = float(self.per_s[client]), way * math.inf
        if not per_s > 0:
            return best
        length_s, none = float(self._window_s[client]), float(self._none[client])
        window, mean = math.floor(t_s / length_s), per_s * length_s
        while not math.isfinite(best):
            drawn, term, below = uniform(self._key, client, window), none, none
            for place, stream in enumerate(self._streams):
                if drawn < below:
                    break
                term = term * mean / (place + 1)
                below += term
                event_s = (window + uniform(stream, client, window)) * length_s
                if (event_s > t_s) == (way > 0) and self._keeps(stream, client, window, event_s):
                    best = min(best, event_s) if way > 0 else max(best, event_s)
            window += way
        return best

    def _keeps(self, stream: int, client: int, window: int, event_s: float) -> bool:
        if self._kept is None:
            return True
        share = self._kept(np.array([client]), np.array([event_s]))
        return bool(uniform(stream, client, window, 1) < share[0])

    def _events(self, clients: Ints, window: Ints) -> Iterator[tuple[Ints, Floats]]:
        """The events of a window of each client: the rows that have a first, a second ..., and when."""
        rows, drawn = np.arange(len(clients)), uniforms(self._key, clients, window, count=1)[0]
        mean = self.per_s[clients] * self._window_s[clients]
        term = below = self._none[clients]
        for place, stream in enumerate(self._streams):
            rows = rows[drawn[rows] >= below[rows]]
            if not len(rows):
                return
            term = term * mean / (place + 1)
            below = below + term
            whom = clients[rows]
            lies = uniforms(stream, whom, window[rows], count=1 if self._kept is None else 2)
            times = (window[rows] + lies[0]) * self._window_s[whom]
            kept = np.ones(len(rows), dtype=bool) if self._kept is None else lies[1] < self._kept(whom, times)
            yield rows[kept], times[kept]
