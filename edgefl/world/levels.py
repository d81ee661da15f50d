"""Capacities that are shared max-min fairly, and priority queues of their members.

Rates are compared as whole numbers of 2^-52 bit/s, which every double of at least 1 is: sums do not depend on
the order of members, and rounding puts nobody on both sides of a level.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar

_SCALE = 2**52
# Doubles from here on are whole, and the product with the scale may be too large for one.
_WHOLE_BPS = 2.0**53
# More than all finite rates together, and than many of the others.
_ENDLESS, _BEYOND = 1 << 1100, 1 << 1200
_ticket = count().__next__


def _exact(bps: float) -> int:
    if math.isinf(bps):
        return _ENDLESS
    return round(bps * _SCALE) if bps < _WHOLE_BPS else int(bps) * _SCALE


class Member:
    """What has a share of a capacity.

    Attributes:
        limit_bps: the most that it gets, for each of its flows.
        weight: the number of its flows.
        is_in: whether it is in the capacity.
        capped: whether it gets its limit, which is not above the level.
        entered: changes with its place; entries of queues that have another number no longer hold.
    """

    __slots__ = ("capped", "entered", "exact", "is_in", "limit_bps", "weight")

    def __init__(self, limit_bps: float) -> None:
        self.is_in, self.capped, self.entered = False, True, 0
        self.limit(limit_bps, 1)

    def limit(self, bps: float, weight: int) -> None:
        """Sets the limit and the weight of a member that is not in the capacity."""
        self.limit_bps, self.weight = bps, weight
        self.exact = _exact(bps)


M = TypeVar("M", bound=Member)


class _Entry(NamedTuple):
    key: float
    ticket: int
    entered: int
    member: Any


class PriorityQueue(Generic[M]):
    """Members by a number, the least first; a member that has changed its place since is in it no more."""

    __slots__ = ("_entries", "_most")

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._most = 64

    def push(self, key: float, member: M) -> None:
        """Adds a member at its present place."""
        if len(self._entries) >= self._most:
            self._entries = [entry for entry in self._entries if entry[2] == entry[3].entered]
            heapify(self._entries)
            self._most = 64 + 2 * len(self._entries)
        heappush(self._entries, _Entry(key, _ticket(), member.entered, member))

    def top(self) -> M | None:
        """The first member."""
        entries = self._entries
        while entries and entries[0][2] != entries[0][3].entered:
            heappop(entries)
        return entries[0][3] if entries else None

    def first(self) -> float:
        """The first member's number; infinite if there is none."""
        return math.inf if self.top() is None else self._entries[0][0]

    def pop_until(self, key: float) -> list[M]:
        """Takes out the members whose numbers are not above one."""
        found = []
        while self.first() <= key and self._entries:
            found.append(heappop(self._entries)[3])
        return found


class Capacity(Generic[M]):
    """A capacity's members: those that have their limits, and those at its level.

    Attributes:
        weight: the number of flows at the level.
    """

    __slots__ = ("_at_level", "_capped", "_exact", "_used", "weight")

    def __init__(self, bps: float) -> None:
        """A capacity without members; inf is no limit."""
        self._exact = _BEYOND if math.isinf(bps) else _exact(bps)
        self._used = 0
        self.weight = 0
        # The largest limit first, and the least first.
        self._capped, self._at_level = PriorityQueue[M](), PriorityQueue[M]()

    @property
    def level_bps(self) -> float:
        """What a flow may have; infinite if nobody is limited."""
        return (self._exact - self._used) / (self.weight * _SCALE) if self.weight else math.inf

    def add(self, member: M) -> None:
        """Adds a member with its limit; ``settle`` follows."""
        member.is_in = True
        self._enter(member, capped=True)

    def remove(self, member: M) -> None:
        """Removes a member; ``settle`` follows."""
        self._leave(member)
        member.is_in = False

    def settle(self, leaving: Callable[[M], None] | None = None) -> list[M]:
        """Moves members to the side of the level on which they belong; returns them.

        Args:
            leaving: called with each before it moves.
        """
        moved = []
        while (member := self._misplaced()) is not None:
            if leaving is not None:
                leaving(member)
            self._leave(member)
            self._enter(member, capped=not member.capped)
            moved.append(member)
        return moved

    def _misplaced(self) -> M | None:
        room = self._exact - self._used
        member = self._capped.top()
        if member is not None and (member.exact * self.weight > room if self.weight else room < 0):
            return member
        member = self._at_level.top()
        return member if member is not None and member.exact * self.weight <= room else None

    def _enter(self, member: M, *, capped: bool) -> None:
        member.capped = capped
        if capped:
            self._used += member.exact * member.weight
            self._capped.push(-member.exact, member)
        else:
            self.weight += member.weight
            self._at_level.push(member.exact, member)

    def _leave(self, member: M) -> None:
        if member.capped:
            self._used -= member.exact * member.weight
        else:
            self.weight -= member.weight
        member.entered += 1
