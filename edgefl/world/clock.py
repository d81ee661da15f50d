"""SimPy's environment, with events at absolute times."""

from __future__ import annotations

from collections.abc import Callable, Generator
from heapq import heappush
from typing import Any

import simpy
from simpy.events import NORMAL, URGENT


class Clock(simpy.Environment):
    """An environment whose events can be scheduled at an absolute time, without a rounded difference."""

    def __init__(self) -> None:
        """At 0, as a float: arrays made of the time must not be of integers."""
        super().__init__(0.0)

    def process(self, generator: Generator[simpy.Event, Any, Any]) -> simpy.Process:
        """A process; errors of every class leave it as they were raised."""
        return super().process(_copyable(generator) if isinstance(generator, Generator) else generator)

    def at(self, t_s: float, *, urgent: bool = False) -> simpy.Event:
        """An event that happens at a time; an urgent one before the others of that time."""
        event = simpy.Event(self)
        event._ok, event._value = True, None  # noqa: SLF001 - as SimPy's own Timeout does
        priority = URGENT if urgent else NORMAL
        heappush(self._queue, (max(float(t_s), self.now), priority, next(self._eid), event))
        return event

    def call(self, t_s: float, function: Callable[[], None]) -> None:
        """Calls a function at a time."""
        event = self.at(t_s)
        event.callbacks = [lambda _: function()]


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
