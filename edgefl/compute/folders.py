"""Temporary folders with their owner's number, by which those of killed processes are told and removed."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path

import psutil


def owned_folder(prefix: str, parent: Path | None = None) -> Path:
    """A fresh folder of this process's; those that processes of this computer left when they were killed go.

    Args:
        prefix: what its name begins with.
        parent: where; None is the system's temporary folder.
    """
    parent = parent or Path(tempfile.gettempdir())
    # Processes of another computer, or of a container with a name of its own, are not to be seen from here.
    family = f"{prefix}{zlib.crc32(platform.node().encode()) & 0xFFFF:04x}-"
    for path in parent.glob(f"{family}*-*"):
        owner = path.name.removeprefix(family).partition("-")[0]
        if owner.isdecimal() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(path, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{family}{os.getpid()}-", dir=parent))


def removed(folders: Iterable[Path]) -> None:
    """Removes folders with what is in them, as far as that goes."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
