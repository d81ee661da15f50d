"""Who can be asked now: who is free, and there."""

from collections.abc import Callable

import numpy as np

from edgefl.core.arrays import Bools, Ints
from edgefl.core.availability import Timetable
from edgefl.core.availability.charging import Charging

# The time that is looked up ends where so many clients have changed, or half of them, if not before.
_AHEAD = 4096
_CHANGES = 16
_BLOCK = 128


class Candidates:
    """A set of clients in order, whose n-th members are found without going through all."""

    def __init__(self, clients: int) -> None:
        """The empty set, of so many clients that there are."""
        # Who is a member, and how many members there are in each block.
        self._members = np.zeros(-(-clients // _BLOCK) * _BLOCK, dtype=bool)
        self._counts = np.zeros(len(self._members) // _BLOCK, dtype=np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def array(self) -> Ints:
        return np.flatnonzero(self._members)

    def at(self, places: Ints) -> Ints:
        """The members at some places; a time that depends on their number, not on that of clients."""
        if len(places) * _BLOCK > len(self._members):
            return self.array()[places]
        ends = self._counts.cumsum()
        block = ends.searchsorted(places, side="right")
        before = ends[block] - self._counts[block]
        upto = self._members.reshape(-1, _BLOCK)[block].cumsum(axis=1)
        found: Ints = block * _BLOCK + (upto > (places - before)[:, None]).argmax(axis=1)
        return found

    def has(self, client: int) -> bool:
        return 0 <= client < len(self._members) and bool(self._members[client])

    def put(self, client: int, *, inside: bool) -> None:
        if self._members[client] != inside:
            step = 1 if inside else -1
            self._members[client] = inside
            self._counts[client // _BLOCK] += step
            self._count += step

    def put_all(self, clients: Ints, inside: Bools) -> None:
        """Adds or removes different ones."""
        steps = inside.astype(np.int64) - self._members[clients]
        np.add.at(self._counts, clients // _BLOCK, steps)
        self._members[clients] = inside
        self._count += int(steps.sum())


class Presence:
    """The clients' availability at times that never fall.

    A timetable's answers depend on the client and the time alone, so that those of some time to come are
    looked up at once and gone through in order. Those of batteries hold until the next job: they are looked
    up when they expire, and when a job has drained the battery.

    Attributes:
        there: whether each client is available.
        until_s: until when that holds, at least.
        next_s: nothing changes before.
    """

    def __init__(self, timetable: Timetable, clients: int, changed: Callable[[Ints], None]) -> None:
        """Starts before time 0; ``changed`` is called with the clients that may have come or left."""
        self._timetable, self._changed = timetable, changed
        self.there = np.zeros(clients, dtype=bool)
        self.until_s = np.full(clients, -np.inf)
        self.next_s = -np.inf
        self._ahead = not isinstance(timetable, Charging)
        # The changes before ``_known_s``, in order: whom, when, whether they come, until when they stay.
        self._known_s = -np.inf
        self._changes: tuple[np.ndarray, ...] = (np.zeros(0, dtype=np.int64), *(np.zeros(0),) * 3)
        self._place = 0

    def advance(self, now_s: float) -> None:
        if now_s < self.next_s:
            return
        if not self._ahead:
            self._look(np.flatnonzero(self.until_s <= now_s), now_s)
            self.next_s = float(self.until_s.min(initial=np.inf))
            return
        if now_s >= self._known_s:
            self._look(np.flatnonzero(self.until_s <= now_s), now_s)
            self._foresee()
        at_s = self._changes[1]
        passed = int(at_s.searchsorted(now_s, side="right"))
        if passed > self._place:
            # Of a client that changed twice, the last one stays.
            whom, _, comes, stays_s = (column[self._place : passed] for column in self._changes)
            self.there[whom], self.until_s[whom] = comes, stays_s
            self._place = passed
            self._changed(np.unique(whom))
        self.next_s = float(at_s[passed]) if passed < len(at_s) else self._known_s

    def forget(self, clients: Ints) -> None:
        """The batteries of some clients were drained."""
        self.until_s[clients] = self.next_s = -np.inf

    def _look(self, clients: Ints, now_s: float) -> None:
        if len(clients):
            now = np.full(len(clients), now_s)
            self.there[clients], self.until_s[clients] = self._timetable.at(clients, now)
            self._changed(clients)

    def _foresee(self) -> None:
        nth = min(_AHEAD, len(self.until_s) // 2)
        self._known_s = float(np.partition(self.until_s, nth)[nth])
        whom = np.flatnonzero(self.until_s < self._known_s)
        at_s = self.until_s[whom]
        changes: list[tuple[np.ndarray, ...]] = []
        while len(whom) and len(changes) < _CHANGES:
            comes, stays_s = self._timetable.at(whom, at_s)
            changes.append((whom, at_s, comes, stays_s))
            again = stays_s < self._known_s
            whom, at_s = whom[again], stays_s[again]
        # What is left changes oftener than is looked up.
        self._known_s = float(at_s.min(initial=self._known_s))
        self._place, self._changes = 0, (self._changes[0][:0], *(np.zeros(0),) * 3)
        if changes:
            columns = [np.concatenate(column) for column in zip(*changes, strict=True)]
            order = np.argsort(columns[1], kind="stable")
            order = order[: np.searchsorted(columns[1][order], self._known_s)]
            self._changes = tuple(column[order] for column in columns)
