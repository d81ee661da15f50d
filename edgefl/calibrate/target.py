"""Where a device file goes, and why it may not."""

from __future__ import annotations

import re
from pathlib import Path

from edgefl.core import catalogue
from edgefl.core.errors import UserError

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


def target(name: str, out: Path | None, *, force: bool) -> Path:
    """The file to write: ``out``, or ``devices/NAME.yaml`` in the first folder of EDGEFL_PATH or else here.

    Raises:
        UserError: the name is none, another file has it, or the file is there and ``force`` is not given.
    """
    if not _NAME.fullmatch(name):
        raise UserError(
            f"{name!r} cannot be a device's name",
            where="NAME",
            hint="take small letters, digits, '-', '_' and '.', such as my-laptop",
        )
    path = out or next(iter(catalogue.user_folders()), Path()) / "devices" / f"{name}.yaml"
    known = catalogue.entries("devices").get(name)
    if known is not None and known.path.resolve() != path.resolve():
        raise UserError(
            f"a device is called {name!r} already", where=str(known.path), hint="take another name"
        )
    if path.exists() and not force:
        raise UserError(
            f"{path.name} is there already",
            where=str(path),
            hint="take another name, or overwrite it with --force",
        )
    if path.suffix != ".yaml":
        raise UserError(f"{path.name} is no .yaml file", where="--out", hint=f"such as --out {name}.yaml")
    return path


def usable(path: Path) -> bool:
    """Whether scenarios find the file by its name."""
    folders = [catalogue.shipped("devices"), *(root / "devices" for root in catalogue.user_folders())]
    return any(path.resolve().is_relative_to(folder.resolve()) for folder in folders)
