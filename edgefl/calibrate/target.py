"""Where a device file goes, and why it may not."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from edgefl.core import catalogue
from edgefl.core.errors import UserError

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


def target(name: str, out: Path | None, *, force: bool) -> Path:
    """The file to write: ``out``, or ``devices/NAME.yaml`` in the first folder of EDGEFL_PATH or else here.

    Raises:
        UserError: the name is none, another file has it, the file is there and ``force`` is not given, or
            nothing can be written in its folder.
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
    if path.is_dir():
        raise UserError(f"{path} is a folder", where="--out", hint=f"such as --out {path / name}.yaml")
    if path.exists() and not force:
        raise UserError(
            f"{path.name} is there already",
            where=str(path),
            hint="take another name, or overwrite it with --force",
        )
    if path.suffix != ".yaml":
        raise UserError(f"{path.name} is no .yaml file", where="--out", hint=f"such as --out {name}.yaml")
    _check_room(path, "--out" if out else str(path.parent))
    return path


def _check_room(path: Path, where: str) -> None:
    """Sees to it that measuring for minutes is not in vain.

    Raises:
        UserError: nothing can be written in the nearest folder that there is.
    """
    folder = next(one for one in path.absolute().parents if one.exists())
    try:
        # Asked by doing it: what permissions say is not all, on a read-only or a special file system.
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise UserError(
            f"nothing can be written in {folder}: {error.strerror}", where=where, hint="choose another --out"
        ) from error


def usable(path: Path) -> bool:
    """Whether scenarios find the file by its name."""
    folders = [catalogue.shipped("devices"), *(root / "devices" for root in catalogue.user_folders())]
    return any(path.resolve().is_relative_to(folder.resolve()) for folder in folders)
