"""This machine: its name, cores and memory."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

import psutil

from edgefl.core.host import processor

_BOARD = Path("/proc/device-tree/model")


@dataclass(frozen=True)
class Machine:
    """The machine.

    Attributes:
        title: its name for people.
        category: a device category, guessed from what the system reports.
        memory_bytes: the total.
        used_bytes: what all other programs use now.
    """

    title: str
    category: str
    memory_bytes: int
    used_bytes: int


def this_machine() -> Machine:
    """What the system reports."""
    memory = psutil.virtual_memory()
    board = _board()
    return Machine(
        title=f"{board or processor() or platform.machine()}, {psutil.cpu_count() or 1} cores",
        category="sbc" if board else _category(),
        memory_bytes=memory.total,
        used_bytes=memory.total - memory.available,
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
