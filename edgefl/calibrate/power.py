"""Power as the processor counts it: Linux's powercap tree (RAPL), where it is there and may be read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")


class Reading:
    """The mean power of a stretch of time; None where nothing counts it."""

    watts: float | None = None


@contextmanager
def meter(tree: Path = POWERCAP) -> Iterator[Reading]:
    """Measures the mean power of what is inside."""
    reading, start = Reading(), time.perf_counter()
    before = joules(tree)
    yield reading
    after = joules(tree)
    elapsed_s = time.perf_counter() - start
    # A counter that began anew in between tells nothing.
    if before is not None and after is not None and after >= before and elapsed_s > 0:
        reading.watts = (after - before) / elapsed_s


def joules(tree: Path = POWERCAP) -> float | None:
    """What all packages have counted so far; None where there is no counter that may be read."""
    counters = [
        folder / "energy_uj" for folder in sorted(tree.glob("intel-rapl:*")) if folder.name.count(":") == 1
    ]
    try:
        return sum(int(counter.read_text()) for counter in counters) / 1e6 if counters else None
    except (OSError, ValueError):
        return None


def why_unknown(tree: Path = POWERCAP) -> str:
    """Why there is no counter; empty where there is one."""
    if joules(tree) is not None:
        return ""
    if not list(tree.glob("intel-rapl:*")):
        return f"the system exposes no power counter ({tree} holds none); a meter at the socket would tell"
    return f"the power counter under {tree} may not be read by this user; a meter at the socket would tell"
