"""This computer, this process and what is installed, as the system reports them."""

import os
import platform
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import psutil

from edgefl.core.errors import UserError

Result = TypeVar("Result")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_threads(threads: int) -> None:
    """Refuses to measure threads that would compete."""
    if threads > cores():
        what, hint = f"{threads} threads would compete for {cores()} cores", f"use at most {cores()}"
        raise UserError(what, where="--threads", hint=hint)


def version() -> str:
    """The installed version of edgefl; "unknown" where it is not installed, as in a bare checkout."""
    try:
        return metadata.version("edgefl-emulator")
    except metadata.PackageNotFoundError:
        return "unknown"


def needs(module: str, what: str, extra: str = "", where: str = "") -> None:
    """Refuses ``what`` needs a package that is not installed, said with its verb, as in "figures need"."""
    spec = find_spec(module)
    # A directory of that name is a namespace package; W&B makes one where it is used.
    if spec is None or spec.origin is None:
        hint = f"pip install 'edgefl-emulator[{extra or module}]'"
        raise UserError(f"{what} {module}, which is not installed", where=where, hint=hint)


def board_name() -> str:
    """The name of a single-board computer; empty elsewhere."""
    return _text("/proc/device-tree/model").strip("\0 \n")


def machine_title() -> str:
    """This machine's name for people, by which a device file is known as its own."""
    return f"{board_name() or processor() or platform.machine()}, {os.cpu_count() or 1} cores"


def processor() -> str:
    """The processor's model name; empty where the system does not report one."""
    return _value("/proc/cpuinfo", "model name") or platform.processor()


def growth(work: Callable[[], Result]) -> tuple[Result, int]:
    """What some work returns, and the most bytes that this process grew by during it.

    Where the system keeps no high-water mark, the memory at the end counts, with what the work returns in it.
    """
    process = psutil.Process()
    with suppress(OSError):
        # 5 resets the high-water mark.
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = process.memory_info().rss
    result = work()
    kibibytes = _value("/proc/self/status", "VmHWM").removesuffix("kB")
    most = int(kibibytes) * 1024 if kibibytes else process.memory_info().rss
    return result, max(0, most - before)


def _value(file: str, key: str) -> str:
    """The value of the first ``key: value`` line in a file; empty where there is none."""
    lines = (line for line in _text(file).splitlines() if line.startswith(key))
    return next(lines, "").partition(":")[2].strip()


def _text(file: str) -> str:
    """What the system says in a file; empty where it has none."""
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
