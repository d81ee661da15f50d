"""SimPy's environment, with events at absolute times and an order of those of one time.

What happens to jobs comes first, then losses, then what policies wait for: a policy that is told of a time
sees all that has happened at it, and an upload that arrives as its client is given up has arrived.
"""

from collections.abc import Generator
from heapq import heapify, heappush
from typing import Any, TypeAlias

import simpy
from simpy.events import NORMAL, Condition, Timeout

Process: TypeAlias = Generator[simpy.Event, Any, None]
"""What a SimPy process is made of."""

LOSS, LATER = 2, 3
"""Priorities after SimPy's NORMAL: of losses, and of what policies wait for."""

_FEW = 64
# Of events that were cancelled.
_NOBODY: list[Any] = []


class At(simpy.Event):
    """An event at an absolute time, without the rounded difference of SimPy's ``timeout``.

    SimPy schedules by delays alone; so this class and ``Clock`` write to its queue.
    """

    def __init__(self, env: "Clock", t_s: float, priority: int = NORMAL) -> None:
        self.env, self.callbacks, self._ok, self._value = env, [], True, None
        entry: Any = t_s if t_s > env._now else env._now, priority, next(env._eid), self  # noqa: FURB136, SLF001
        heappush(env._queue, entry)  # noqa: SLF001


class Lost(At):
    """An event that fails at a time: the job that waits for it is lost then."""

    def __init__(self, env: "Clock", t_s: float, cause: Any) -> None:
        super().__init__(env, t_s, LOSS)
        self._ok, self._value, self._defused = False, simpy.Interrupt(cause), True


class Clock(simpy.Environment):
    """Virtual time, in seconds from 0."""

    def __init__(self) -> None:
        """At 0, as a float: arrays made of the time must not be of integers."""
        super().__init__(0.0)
        self._cancelled = 0

    def at(self, t_s: float, priority: int = NORMAL) -> simpy.Event:
        """An event at an absolute time, or now if that is past."""
        return At(self, t_s, priority)

    def cancel(self, event: simpy.Event) -> None:
        """Nothing happens at an event's time; events are forgotten once half of all are such."""
        if not event.processed:
            event.callbacks = _NOBODY
            self._cancelled += 1
        if self._cancelled > _FEW + len(self._queue) // 2:
            self._queue[:] = [entry for entry in self._queue if entry[-1].callbacks is not _NOBODY]
            heapify(self._queue)
            self._cancelled = 0

    def process(self, generator: Generator[simpy.Event, Any, Any]) -> simpy.Process:
        """A process; errors of every class leave it as they were raised."""
        return super().process(_copyable(generator) if isinstance(generator, Generator) else generator)

    def schedule(self, event: simpy.Event, priority: Any = NORMAL, delay: float = 0.0) -> None:
        """As SimPy does, but timeouts and conditions (``all_of``, ``any_of``) happen at the end of a time.

        A process that was interrupted half-way through a change ends the simulation there: nothing else
        happens at that time.
        """
        if not event._ok and not isinstance(event._value, Exception):  # noqa: SLF001
            raise event._value  # noqa: SLF001
        if isinstance(event, (Condition, Timeout)):
            priority = LATER
        heappush(self._queue, (self._now + delay, priority, next(self._eid), event))


class ProcessError(Exception):
    """Carries the error of a process that SimPy cannot copy, as its cause."""


def _copyable(generator: Generator[simpy.Event, Any, Any]) -> Generator[simpy.Event, Any, Any]:
    """The process, with a ``ProcessError`` in place of errors that SimPy cannot copy.

    SimPy raises a copy of a process's error, made of its arguments; not every constructor takes them.
    """
    try:
        return (yield from generator)
    except BaseException as error:
        try:
            type(error)(*error.args)
        except Exception:  # noqa: BLE001 - a user's constructor may raise anything
            raise ProcessError(str(error)) from error
        raise
