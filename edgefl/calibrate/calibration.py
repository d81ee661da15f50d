"""A calibration from start to end: check the file's name and place, measure, write it."""

from __future__ import annotations

import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgefl.calibrate.devices import measured_device, roofline_device
from edgefl.calibrate.machine import this_machine
from edgefl.calibrate.measure import FULL, Effort, Progress, Session
from edgefl.core import catalogue
from edgefl.core.errors import UserError
from edgefl.core.files import atomically
from edgefl.core.fresh import Caller, call
from edgefl.core.host import cores
from edgefl.core.yamls import dump
from edgefl.report.calibration import Prediction

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


@dataclass(frozen=True)
class Calibration:
    """A calibrated device.

    Attributes:
        device: its name.
        file: its file.
        kind: "roofline" or "measured".
        found: whether scenarios find the file by the device's name.
        numbers: the file's content.
        steps: each network in training: what was measured, and what the file predicts.
        inference: likewise in inference.
        notes: what a reader of the numbers should know.
        took_s: seconds.
    """

    device: str
    file: str
    kind: str
    found: bool
    numbers: dict[str, Any]
    steps: list[Prediction]
    inference: list[Prediction]
    notes: list[str]
    took_s: float


def calibrate(
    name: str,
    *,
    out: Path | None = None,
    force: bool = False,
    threads: int = 1,
    curves: bool = False,
    effort: Effort = FULL,
    run: Caller = call,
    progress: Progress = lambda label, done, total: None,  # noqa: ARG005 - a name for each
) -> Calibration:
    """Measures this machine and writes a device file.

    Args:
        name: the device's.
        out: the file; ``devices/NAME.yaml`` in the first folder of EDGEFL_PATH, or here, by default.
        force: overwrite the file if it exists.
        threads: for training and inference.
        curves: write a file of kind "measured", with step times of networks, in place of a roofline.
        effort: how long to measure.
        run: calls a function in a fresh process.
        progress: is called with what comes next, how many processes are done, and of how many.

    Raises:
        UserError: the name or the file cannot be used, or there are fewer cores than threads.
        RunError: a measuring process failed, or the file cannot be written.
    """
    if threads > cores():
        raise UserError(
            f"{threads} threads would compete for {cores()} cores",
            where="--threads",
            hint=f"use at most {cores()}",
        )
    path, start = _target(name, out, force=force), time.perf_counter()
    make = measured_device if curves else roofline_device
    made = make(name, Session(effort, threads, run, progress), this_machine())
    path.parent.mkdir(parents=True, exist_ok=True)
    atomically(path, dump(made.data).encode())
    return Calibration(
        device=name,
        file=str(path),
        kind=made.data["kind"],
        found=_found(path),
        numbers=made.data,
        steps=made.steps,
        inference=made.inference,
        notes=made.notes,
        took_s=time.perf_counter() - start,
    )


def _target(name: str, out: Path | None, *, force: bool) -> Path:
    """The file to write.

    Raises:
        UserError: the name is invalid or taken, the file exists and ``force`` is not given, or it cannot be
            written.
    """
    if not _NAME.fullmatch(name):
        raise UserError(
            f"invalid device name {name!r}",
            where="NAME",
            hint="use lower-case letters, digits, '-', '_' and '.', such as my-laptop",
        )
    path = out or next(iter(catalogue.user_folders()), Path()) / "devices" / f"{name}.yaml"
    known = catalogue.entries("devices").get(name)
    if known is not None and known.path.resolve() != path.resolve():
        raise UserError(
            f"the name {name!r} belongs to another device", where=str(known.path), hint="choose another name"
        )
    if path.is_dir():
        raise UserError(f"{path} is a folder", where="--out", hint=f"try --out {path / name}.yaml")
    if path.exists() and not force:
        raise UserError(
            f"{path.name} already exists",
            where=str(path),
            hint="choose another name, or overwrite it with --force",
        )
    if path.suffix != ".yaml":
        raise UserError(f"{path.name} is not a .yaml file", where="--out", hint=f"try --out {name}.yaml")
    _check_writable(path, "--out" if out else str(path.parent))
    return path


def _check_writable(path: Path, where: str) -> None:
    """Checks before the measurements, which take minutes, that the file can be written.

    Raises:
        UserError: the nearest folder that exists cannot be written to.
    """
    folder = next(one for one in path.absolute().parents if one.exists())
    try:
        # Permissions do not tell about read-only and special file systems, so a file is really written.
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise UserError(
            f"cannot write in {folder}: {error.strerror}", where=where, hint="choose another --out"
        ) from error


def _found(path: Path) -> bool:
    """Whether scenarios find the file by its name."""
    folders = [catalogue.shipped("devices"), *(root / "devices" for root in catalogue.user_folders())]
    return any(path.resolve().is_relative_to(folder.resolve()) for folder in folders)
