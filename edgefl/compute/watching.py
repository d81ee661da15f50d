"""This process's memory over a period: before, after, and the peak in between."""

from __future__ import annotations

import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import psutil

from edgefl.core.host import forget_high_water, high_water_bytes

_EVERY_S = 0.001
# Counting the process's unshared pages takes milliseconds.
_USS_EVERY = 20


class Held(NamedTuple):
    """Bytes of a process: resident, and unshared."""

    rss: int
    uss: int


_NOTHING = Held(0, 0)


@dataclass
class Memory:
    """Readings; all but ``before`` are filled in at the end of the period.

    Attributes:
        before: at the start.
        after: at the end.
        peak: the maximum of the samples, every millisecond for ``rss``, every twentieth for ``uss``.
        high_water_added: the rise of the kernel's high-water mark of resident bytes; None where there is
            none.
        maxrss_added: the rise of ``ru_maxrss``: 0 where the start-up, or the parent, held more.
    """

    before: Held = _NOTHING
    after: Held = _NOTHING
    peak: Held = _NOTHING
    high_water_added: int | None = None
    maxrss_added: int = 0


@contextmanager
def watching() -> Iterator[Memory]:
    """Watches this process's memory while it is open."""
    # The mark so far is that of the imports, whose peak is above what they hold in the end.
    forget_high_water()
    memory = Memory(before=_held())
    memory.peak = memory.before
    maxrss, high_water = _maxrss(), high_water_bytes()
    over = threading.Event()
    sampler = threading.Thread(target=_sample, args=(memory, over), daemon=True)
    sampler.start()
    try:
        yield memory
    finally:
        over.set()
        sampler.join()
        memory.after = _held()
        memory.peak = Held(*map(max, memory.peak, memory.after))
        memory.maxrss_added = _maxrss() - maxrss
        now = high_water_bytes()
        memory.high_water_added = None if now is None or high_water is None else now - high_water


def _held() -> Held:
    """The memory of this process now."""
    full = psutil.Process().memory_full_info()
    return Held(full.rss, full.uss)


def _sample(memory: Memory, over: threading.Event) -> None:
    process = psutil.Process()
    rss, uss = memory.before
    nth = 0
    while not over.wait(_EVERY_S):
        rss = max(rss, process.memory_info().rss)
        if nth % _USS_EVERY == 0:
            uss = max(uss, process.memory_full_info().uss)
        nth += 1
    memory.peak = Held(rss, uss)


def _maxrss() -> int:
    # Bytes on macOS, kibibytes elsewhere.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
