"""A calibration from start to end: measure, make the device file's content, write it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from edgefl.calibrate.curves import measured_device
from edgefl.calibrate.host import host
from edgefl.calibrate.roofline import roofline_device
from edgefl.calibrate.session import FULL, Effort, Session, Watch
from edgefl.calibrate.target import target, usable
from edgefl.core.errors import UserError
from edgefl.core.files import atomically
from edgefl.core.fresh import Caller, call, cores
from edgefl.core.yamls import dump


def _nobody(label: str, done: int, total: int) -> None:
    """Watches nothing."""


def calibrate(
    name: str,
    *,
    out: Path | None = None,
    force: bool = False,
    threads: int = 1,
    curves: bool = False,
    effort: Effort = FULL,
    run: Caller = call,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Measures this machine and writes a device file.

    Args:
        name: the device's.
        out: the file; see ``target`` for where it goes by default.
        force: whether a file that is there is overwritten.
        threads: what training and inference work on.
        curves: whether the file is of kind "measured", step times of networks, in place of a roofline.
        effort: how long to measure.
        run: calls a function in a fresh process.
        watch: is told of progress.

    Returns:
        "device", "file", "kind", "found" (whether scenarios find it by name), "numbers" (the file's content),
        "steps" and "inference" (a row for each network: what was measured, and what the file predicts),
        "notes" and "took_s".

    Raises:
        UserError: the name or the file cannot be taken, or there are fewer cores than threads.
        RunError: a measuring process failed, or the file cannot be written.
    """
    if threads > cores():
        raise UserError(
            f"{threads} threads on {cores()} cores would wait for each other",
            where="--threads",
            hint=f"take {cores()} at most",
        )
    path, start = target(name, out, force=force), time.perf_counter()
    device = measured_device if curves else roofline_device
    outcome = device(name, Session(effort, threads, run, watch or _nobody), host())
    path.parent.mkdir(parents=True, exist_ok=True)
    atomically(path, dump(outcome.data).encode())
    return {
        "device": name,
        "file": str(path),
        "kind": outcome.data["kind"],
        "found": usable(path),
        "numbers": outcome.data,
        "steps": outcome.steps,
        "inference": outcome.inference,
        "notes": outcome.notes,
        "took_s": time.perf_counter() - start,
    }
