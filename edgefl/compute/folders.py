"""Temporary folders named after their process, so that those of killed processes can be removed."""

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
    """A fresh folder of this process; folders of killed processes of this computer are removed.

    Args:
        prefix: of its name.
        parent: the folder that it lies in; None for the system's temporary folder.
    """
    parent = parent or Path(tempfile.gettempdir())
    # Processes of other computers, or of containers with host names of their own, are not visible here.
    family = f"{prefix}{zlib.crc32(platform.node().encode()) & 0xFFFF:04x}-"
    for path in parent.glob(f"{family}*-*"):
        owner = path.name.removeprefix(family).partition("-")[0]
        if owner.isdecimal() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(path, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{family}{os.getpid()}-", dir=parent))


def removed(folders: Iterable[Path]) -> None:
    """Removes folders and their content, as far as possible."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
