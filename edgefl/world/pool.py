"""One direction of a network whose capacities are shared max-min fairly by the flows in progress.

A flow goes through its client's own link, whose rate is the flow's cap, through its client's cell if there
is one, and through the server's link. Max-min fair: every flow is at its cap, or no other flow has a larger
share of some capacity on its way that is used up (Bertsekas and Gallager 1992, "Data Networks", section
6.5.2). As cells lie within the server's link, a flow's rate is the least of its cap, the level of its cell
and the level of the server, where a capacity's level is the most that one flow may have of it.

Levels are kept up to date, not solved for anew, and so is what is left of the flows. Those at their own caps
end at a time, which stays as it is. Those at the server's level end in the order of readings of its clock,
the integral of the level, which stay as they are while the level moves. Those at a cell's level end by that
cell's clock, and are together one member of the server's capacity. So a start or an end takes a time that
grows with the logarithm of the number of flows. Rates are compared as whole numbers of 2^-52 bit/s, which
every double of at least 1 is: sums do not depend on the order of members, and rounding puts nobody on both
sides of a level.
"""

import math
from collections.abc import Callable, Iterable, Mapping
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
        if len(self._entries) >= self._most:
            self._entries = [entry for entry in self._entries if entry[2] == entry[3].entered]
            heapify(self._entries)
            self._most = 64 + 2 * len(self._entries)
        heappush(self._entries, _Entry(key, _ticket(), member.entered, member))

    def top(self) -> M | None:
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


class Flow(Member):
    """A transfer in progress; as a member, of the server's capacity.

    Attributes:
        owner: for its user.
        cell: the number of its cell; -1 for none.
        alone_s: when it ends if it has its cap all the time; None if it has not had it, or to reckon.
        at: when it ends: a time if it has its cap, or else a reading of the clock of the level that it is at.
        local: as a member of its cell's capacity.
    """

    __slots__ = ("alone_s", "at", "cell", "local", "owner")

    def __init__(self, owner: Any, cap_bps: float, cell: int = -1, alone_s: float | None = None) -> None:
        super().__init__(cap_bps)
        self.owner, self.cell, self.alone_s = owner, cell, alone_s
        self.at = math.inf
        self.local = _Local(self) if cell >= 0 else None

    @property
    def is_within(self) -> bool:
        """Whether it is at its cell's level."""
        return self.local is not None and self.local.is_in and not self.local.capped


class _Local(Member):
    """A flow as a member of its cell's capacity."""

    __slots__ = ("flow",)

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow.limit_bps)
        self.flow = flow


class _Cell(Member):
    """A cell; as a member of the server's capacity, all flows at its level."""

    __slots__ = ("at", "capacity", "ends", "reading", "since")

    def __init__(self, bps: float) -> None:
        super().__init__(bps)
        self.capacity = Capacity[_Local](bps)
        self.at = math.inf
        # Its clock's reading at a time, or at a reading of the server's clock.
        self.reading, self.since = 0.0, 0.0
        # Flows at its level by the readings at which they end.
        self.ends = PriorityQueue[_Local]()


class Pool:
    """The flows of one direction; times never fall from call to call.

    Attributes:
        next_s: when the next flow ends, if nothing starts or stops before; infinite for never.
    """

    def __init__(self, capacity_bps: float = math.inf, cells: Iterable[float] = ()) -> None:
        """The capacities of the server's link, inf for no limit, and of each cell."""
        self._capacity = Capacity[Flow | _Cell](capacity_bps)
        self._cells = [_Cell(bps) for bps in cells]
        self._now_s, self.next_s, self._mark_s = 0.0, math.inf, math.inf
        # The bits that a flow at the server's level has moved since there was last none.
        self._reading = 0.0
        self._level_bps = math.inf
        # Members that have their limits by times, and the others by readings, at which a flow of theirs ends.
        self._dues, self._marks = PriorityQueue[Flow | _Cell](), PriorityQueue[Flow | _Cell]()
        # What is left of members that have no place in these queues yet.
        self._left: dict[Flow | _Cell, float] = {}

    def start(self, flow: Flow, bits: float, now_s: float) -> None:
        """A new flow begins, with so much left of its transfer; its cap is not 0."""
        self._advance(now_s)
        if flow.local is None:
            self._join(flow, bits)
        else:
            cell = self._cells[flow.cell]
            cell.capacity.add(flow.local)
            self._settle_cell(cell, {flow.local: bits})
        self._settle()

    def stop(self, flow: Flow, now_s: float) -> float:
        """A flow is broken off; returns the bits that are left of it."""
        self._advance(now_s)
        bits = self.left(flow, now_s)
        self._remove([flow])
        return bits

    def left(self, flow: Flow, now_s: float) -> float:
        """The bits that are left of a flow; changes nothing, not even what is rounded next."""
        if flow.is_within:
            return max(0.0, flow.at - self._cell_clock(self._cells[flow.cell], now_s))
        return self._bits(flow, now_s)

    def rate_bps(self, flow: Flow) -> float:
        if flow.is_within:
            return min(self._cells[flow.cell].capacity.level_bps, self._level_bps)
        return flow.limit_bps if flow.capped else self._level_bps

    def finish(self) -> list[Flow]:
        """Goes on to ``next_s``; returns the flows that end then, which leave the pool."""
        now_s = self.next_s
        self._advance(now_s)
        if self._mark_s <= now_s:
            # The clock may be short of it by rounding.
            self._reading = max(self._reading, self._marks.first())
        ended: list[Flow] = []
        for member in [*self._dues.pop_until(now_s), *self._marks.pop_until(self._reading)]:
            if isinstance(member, Flow):
                ended.append(member)
                continue
            self._read(member)
            member.reading = max(member.reading, member.ends.first())
            ended += [local.flow for local in member.ends.pop_until(member.reading)]
        self._remove(ended)
        return ended

    def _advance(self, now_s: float) -> None:
        self._reading = self._clock(now_s)
        self._now_s = now_s

    def _clock(self, now_s: float) -> float:
        """The server's clock at a time, if nothing happens before."""
        if not self._capacity.weight:
            return self._reading
        return self._reading + self._level_bps * (now_s - self._now_s)

    def _remove(self, flows: Iterable[Flow]) -> None:
        touched: dict[int, None] = {}
        for flow in flows:
            if flow.is_in:
                self._capacity.remove(flow)
            if flow.local is not None:
                self._cells[flow.cell].capacity.remove(flow.local)
                touched[flow.cell] = None
        for cell in touched:
            self._settle_cell(self._cells[cell], {})
        self._settle()

    def _settle_cell(self, cell: _Cell, fresh: Mapping[_Local, float]) -> None:
        """Brings a cell's level up to date, and what the server's capacity has of the cell.

        Args:
            cell: to which flows were added, or from which some were removed.
            fresh: what is left of those that were added.
        """
        reading = self._read(cell)
        if cell.is_in:
            self._capacity.remove(cell)
        for local in dict.fromkeys([*fresh, *cell.capacity.settle()]):
            flow = local.flow
            if local.capped and not flow.is_in:
                self._join(flow, fresh[local] if local in fresh else max(0.0, flow.at - reading))
            elif not local.capped and (flow.is_in or local in fresh):
                left = fresh[local] if local in fresh else self._quit(flow)
                flow.alone_s, flow.at = None, reading + left
                cell.ends.push(flow.at, local)
        if not cell.capacity.weight:
            cell.reading = 0.0
            return
        cell.limit(cell.capacity.level_bps, cell.capacity.weight)
        self._join(cell, max(0.0, cell.ends.first() - reading))

    def _cell_clock(self, cell: _Cell, now_s: float) -> float:
        """A cell's clock at a time, if nothing happens before."""
        if not cell.is_in:
            return cell.reading
        if cell.capped:
            return cell.reading + cell.limit_bps * (now_s - cell.since)
        return cell.reading + (self._clock(now_s) - cell.since)

    def _read(self, cell: _Cell) -> float:
        """A cell's clock now, from which it goes on."""
        cell.reading = self._cell_clock(cell, self._now_s)
        cell.since = self._now_s if cell.capped else self._reading
        return cell.reading

    def _join(self, member: Flow | _Cell, bits: float) -> None:
        self._capacity.add(member)
        self._left[member] = bits

    def _quit(self, flow: Flow) -> float:
        """Takes a flow out of the server's capacity; returns what is left of it."""
        left = self._bits(flow, self._now_s)
        self._capacity.remove(flow)
        return left

    def _bits(self, member: Flow | _Cell, now_s: float) -> float:
        """What is left of a member of the server's capacity until a flow ends."""
        if isinstance(member, _Cell):
            return max(0.0, member.ends.first() - self._cell_clock(member, now_s))
        if not member.capped:
            return max(0.0, member.at - self._clock(now_s))
        left_s = member.at - now_s
        return left_s * member.limit_bps if left_s > 0 else 0.0

    def _leave(self, member: Flow | _Cell) -> None:
        """A member of the server's capacity is about to pass its level."""
        if member not in self._left:
            if isinstance(member, _Cell):
                self._read(member)
            self._left[member] = self._bits(member, self._now_s)

    def _settle(self) -> None:
        """Brings the server's level up to date, and puts members where they belong in queues."""
        self._capacity.settle(self._leave)
        self._level_bps = self._capacity.level_bps
        if not self._capacity.weight:
            self._reading = 0.0
        for member, bits in self._left.items():
            if isinstance(member, _Cell):
                member.since = self._now_s if member.capped else self._reading
            elif not member.capped:
                member.alone_s = None
            if not member.capped:
                member.at = self._reading + bits
                self._marks.push(member.at, member)
                continue
            member.at = self._now_s
            if isinstance(member, Flow) and member.alone_s is not None:
                member.at = member.alone_s
            elif bits:
                member.at += bits / member.limit_bps
            self._dues.push(member.at, member)
        self._left.clear()
        # When the next flow at the server's level ends, or of a cell that is at it.
        self._mark_s = math.inf
        if self._capacity.weight:
            left = max(0.0, self._marks.first() - self._reading)
            self._mark_s = self._now_s + left / self._level_bps
        self.next_s = max(self._now_s, min(self._dues.first(), self._mark_s))
