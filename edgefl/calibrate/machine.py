"""This machine: its name, cores and memory, and its power where the processor counts it.

Power comes from Linux's powercap tree (RAPL), where the system has one and lets this user read it.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from edgefl.core.host import processor

POWERCAP = Path("/sys/class/powercap")
_IDLE_S = 1.0
_BOARD = Path("/proc/device-tree/model")


@dataclass(frozen=True)
class Machine:
    """The machine.

    Attributes:
        title: its name for people.
        category: a device category, guessed from what the system reports.
        memory_bytes: the total.
        used_bytes: what all other programs use now.
        idle_w: power with no work to do; None where nothing counts it.
        why_no_power: why there is no power figure; empty where there is one.
    """

    title: str
    category: str
    memory_bytes: int
    used_bytes: int
    idle_w: float | None
    why_no_power: str


def this_machine() -> Machine:
    """What the system reports; takes a second where it counts power."""
    memory = psutil.virtual_memory()
    board = _board()
    why = why_unknown()
    idle_w = None
    if not why:
        with meter() as reading:
            time.sleep(_IDLE_S)
        idle_w = reading.watts
    return Machine(
        title=f"{board or processor() or platform.machine()}, {psutil.cpu_count() or 1} cores",
        category="sbc" if board else _category(),
        memory_bytes=memory.total,
        used_bytes=memory.total - memory.available,
        idle_w=idle_w,
        why_no_power=why,
    )


def _category() -> str:
    # psutil has no such function on systems without any support for batteries.
    battery = getattr(psutil, "sensors_battery", lambda: None)()
    return "laptop" if battery is not None else "server"


def _board() -> str:
    """The name of a single-board computer; empty elsewhere."""
    try:
        return _BOARD.read_text(encoding="utf-8", errors="replace").strip("\0 \n")
    except OSError:
        return ""


class Reading:
    """The mean power over a period; None where nothing counts it."""

    watts: float | None = None


@contextmanager
def meter(tree: Path = POWERCAP) -> Iterator[Reading]:
    """Measures the mean power while it is open; the reading has it afterwards."""
    reading, start = Reading(), time.perf_counter()
    before = joules(tree)
    yield reading
    after = joules(tree)
    elapsed_s = time.perf_counter() - start
    # A counter that wrapped around in between says nothing.
    if before is not None and after is not None and after >= before and elapsed_s > 0:
        reading.watts = (after - before) / elapsed_s


def joules(tree: Path = POWERCAP) -> float | None:
    """The energy that all packages have counted so far; None where no counter can be read."""
    counters = [
        folder / "energy_uj" for folder in sorted(tree.glob("intel-rapl:*")) if folder.name.count(":") == 1
    ]
    try:
        return sum(int(counter.read_text()) for counter in counters) / 1e6 if counters else None
    except (OSError, ValueError):
        return None


def why_unknown(tree: Path = POWERCAP) -> str:
    """Why no counter can be read; empty where one can."""
    if joules(tree) is not None:
        return ""
    if not list(tree.glob("intel-rapl:*")):
        return f"the system exposes no power counter (no intel-rapl in {tree}); use a meter at the socket"
    return f"this user may not read the power counter under {tree}; use a meter at the socket"
