"""A process's own memory over a stretch of time: before, after, and the most in between."""

from __future__ import annotations

import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

_EVERY_S = 0.001
# The process's own pages are counted one by one, which takes milliseconds.
_OWN_EVERY = 20
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_HIGH_WATER = "5"


class Held(NamedTuple):
    """Bytes of a process: resident, and its own alone."""

    rss: int
    uss: int


_NOTHING = Held(0, 0)


@dataclass
class Memory:
    """What was seen; ``after``, ``peak`` and what was added are there at the end.

    Attributes:
        before: at the start.
        after: at the end.
        peak: the most that was sampled, every millisecond for ``rss``, every twentieth for ``uss``.
        high_water_added: what the kernel's high-water mark of resident bytes rose by; None where there is
            none.
        maxrss_added: what ``ru_maxrss`` rose by: 0 where the start-up, or the parent, held more.
    """

    before: Held = _NOTHING
    after: Held = _NOTHING
    peak: Held = _NOTHING
    high_water_added: int | None = None
    maxrss_added: int = 0


@contextmanager
def watching() -> Iterator[Memory]:
    """Watches what is inside."""
    # The mark as it is tells of the imports, which took more than they hold.
    with suppress(OSError):
        _CLEAR.write_text(_RESET_HIGH_WATER, encoding="ascii")
    memory = Memory(before=held())
    memory.peak = memory.before
    maxrss, high_water = _maxrss(), _high_water()
    over = threading.Event()
    sampler = threading.Thread(target=_sample, args=(memory, over), daemon=True)
    sampler.start()
    try:
        yield memory
    finally:
        over.set()
        sampler.join()
        memory.after = held()
        memory.peak = Held(*map(max, memory.peak, memory.after))
        memory.maxrss_added = _maxrss() - maxrss
        now = _high_water()
        memory.high_water_added = None if now is None or high_water is None else now - high_water


def held() -> Held:
    """What this process holds now."""
    full = psutil.Process().memory_full_info()
    return Held(full.rss, full.uss)


def _sample(memory: Memory, over: threading.Event) -> None:
    process = psutil.Process()
    rss, uss = memory.before
    nth = 0
    while not over.wait(_EVERY_S):
        rss = max(rss, process.memory_info().rss)
        if nth % _OWN_EVERY == 0:
            uss = max(uss, process.memory_full_info().uss)
        nth += 1
    memory.peak = Held(rss, uss)


def _maxrss() -> int:
    # Bytes on macOS, kibibytes elsewhere.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _high_water() -> int | None:
    """The most resident bytes since the mark was reset."""
    try:
        lines = _STATUS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)
