"""This process's resident memory over a period: before, after, and the peak in between."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

from edgefl.core.host import forget_high_water, high_water_bytes

_EVERY_S = 0.001


@dataclass
class Memory:
    """Readings in bytes; all but ``before`` are filled in at the end of the period.

    Attributes:
        before: at the start.
        after: at the end.
        peak: the maximum of samples, every millisecond.
        high_water_added: the rise of the kernel's high-water mark; 0 where there is none.
    """

    before: int
    after: int = 0
    peak: int = 0
    high_water_added: int = 0


@contextmanager
def watching() -> Iterator[Memory]:
    """Watches this process's memory while it is open."""
    # The mark so far is that of the imports, whose peak is above what they hold in the end.
    forget_high_water()
    memory, high_water = Memory(_held()), high_water_bytes()
    over = threading.Event()
    sampler = threading.Thread(target=_sample, args=(memory, over), daemon=True)
    sampler.start()
    try:
        yield memory
    finally:
        over.set()
        sampler.join()
        memory.after = _held()
        memory.peak = max(memory.peak, memory.before, memory.after)
        memory.high_water_added = (high_water_bytes() or 0) - (high_water or 0)


def _held() -> int:
    """What this process holds now."""
    return int(psutil.Process().memory_info().rss)


def _sample(memory: Memory, over: threading.Event) -> None:
    while not over.wait(_EVERY_S):
        memory.peak = max(memory.peak, _held())
