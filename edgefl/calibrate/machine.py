"""This machine: its name, cores and memory."""

from __future__ import annotations

from dataclasses import dataclass

import psutil

from edgefl.core.host import board_name, machine_title


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
    return Machine(
        title=machine_title(),
        category="sbc" if board_name() else _category(),
        memory_bytes=memory.total,
        used_bytes=memory.total - memory.available,
    )


def _category() -> str:
    # psutil has no such function on systems without any support for batteries.
    battery = getattr(psutil, "sensors_battery", lambda: None)()
    return "laptop" if battery is not None else "server"
