"""This computer and this process, as the system reports them."""

import os
import platform
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path
from typing import TypeVar

import psutil

from edgefl.core.errors import UserError

_BOARD = Path("/proc/device-tree/model")
_CPUINFO = Path("/proc/cpuinfo")
_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")
_RESET_HIGH_WATER = "5"
Result = TypeVar("Result")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_threads(threads: int) -> None:
    """Checks that threads have a core each.

    Raises:
        UserError: they do not, and would be measured competing.
    """
    if threads > cores():
        raise UserError(
            f"{threads} threads would compete for {cores()} cores",
            where="--threads",
            hint=f"use at most {cores()}",
        )


def version() -> str:
    """The installed version of edgefl; "unknown" where it is not installed, as in a bare checkout."""
    try:
        return installed("edgefl-emulator")
    except PackageNotFoundError:
        return "unknown"


def board_name() -> str:
    """The name of a single-board computer; empty elsewhere."""
    try:
        return _BOARD.read_text(encoding="utf-8", errors="replace").strip("\0 \n")
    except OSError:
        return ""


def machine_title() -> str:
    """This machine's name for people, by which a device file is known as its own."""
    return f"{board_name() or processor() or platform.machine()}, {os.cpu_count() or 1} cores"


def processor() -> str:
    """The processor's model name; empty where the system does not report one."""
    return _value(_CPUINFO, "model name") or platform.processor()


def growth(work: Callable[[], Result]) -> tuple[Result, int]:
    """What some work returns, and the most bytes that this process grew by during it.

    Where the system keeps no high-water mark, the memory at the end counts, with what the work returns in it.
    """
    process = psutil.Process()
    with suppress(OSError):
        _CLEAR_REFS.write_text(_RESET_HIGH_WATER, encoding="ascii")
    before = process.memory_info().rss
    result = work()
    kibibytes = _value(_STATUS, "VmHWM").removesuffix("kB")
    most = int(kibibytes) * 1024 if kibibytes else process.memory_info().rss
    return result, max(0, most - before)


def _value(path: Path, key: str) -> str:
    """The value of the first ``key: value`` line in a file; empty where there is none."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")
