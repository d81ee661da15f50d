"""What this machine is: its name, its cores, its memory and what is taken of it."""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from edgefl.calibrate.power import POWERCAP, meter, why_unknown

_IDLE_S = 1.0
_BOARD = Path("/proc/device-tree/model")
_PROCESSOR = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Host:
    """The machine.

    Attributes:
        title: its name for people.
        category: as device files have it; a guess from what the system tells.
        cores: how many a process may use.
        memory_bytes: all of it.
        taken_bytes: what other programs have of it now.
        idle_w: power while nothing is asked of it; None where nothing counts it.
        why_no_power: why not; empty where it is counted.
    """

    title: str
    category: str
    cores: int
    memory_bytes: int
    taken_bytes: int
    idle_w: float | None
    why_no_power: str


def host() -> Host:
    """Reads what the system tells; waits a second where it counts power."""
    memory = psutil.virtual_memory()
    cores = psutil.cpu_count() or 1
    why = why_unknown()
    idle_w = None
    if not why:
        with meter(POWERCAP) as reading:
            time.sleep(_IDLE_S)
        idle_w = reading.watts
    return Host(
        title=f"{_board() or processor()}, {cores} cores",
        category=_category(),
        cores=cores,
        memory_bytes=memory.total,
        taken_bytes=memory.total - memory.available,
        idle_w=idle_w,
        why_no_power=why,
    )


def processor() -> str:
    """The processor's name."""
    lines = _text(_PROCESSOR).splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def _board() -> str:
    return _text(_BOARD).strip("\0 \n")


def _category() -> str:
    if _board():
        return "sbc"
    # psutil leaves the function out where the system has no batteries at all.
    battery = getattr(psutil, "sensors_battery", lambda: None)()
    return "laptop" if battery is not None else "server"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
