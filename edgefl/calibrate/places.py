"""Where a calibrated device's file goes, and what to do with it next."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path

from edgefl.core import catalogue
from edgefl.core.errors import UserError
from edgefl.core.outputs import check_free
from edgefl.planning.starting import check_name


def target(name: str, out: Path | None, *, force: bool) -> Path:
    """The file to write.

    Raises:
        UserError: the name is invalid or taken, the file exists and ``force`` is not given, or it cannot be
            written.
    """
    path = out or next(iter(catalogue.user_folders()), Path()) / "devices" / f"{name}.yaml"
    if path.is_dir():
        raise UserError(f"{path} is a folder", where="--out", hint=f"try --out {path / name}.yaml")
    if path.suffix != ".yaml":
        raise UserError(f"{path.name} is not a .yaml file", where="--out", hint=f"try --out {name}.yaml")
    # A device has its file's name.
    for where, text in {"NAME": name, "--out": path.stem}.items():
        check_name("devices", text, path, where)
    check_free(path, force=force)
    if out and not path.parent.exists():
        raise UserError(f"{path.parent} does not exist", where="--out", hint=f"mkdir -p {path.parent}")
    folder = next(one for one in path.absolute().parents if one.exists())
    try:
        # Before measurements, which take minutes. Permissions do not tell about read-only and special file
        # systems, so a file is really written.
        with tempfile.TemporaryFile(dir=folder):
            return path
    except OSError as error:
        what, where = f"cannot write in {folder}: {error.strerror}", "--out" if out else str(path.parent)
        raise UserError(what, where=where, hint="choose another --out") from error


def next_step(path: Path) -> str:
    """The command after a device file was written: to price it, or to have it found first."""
    device, file = path.stem, path.resolve()
    known = catalogue.entries("devices").get(device)
    if known is not None and known.path.resolve() == file:
        return f"edgefl profile quickstart --device {device}"
    if file.parent.name != "devices":
        return f"move it to DIR/devices/, and {_export('DIR')}"
    return _export(shlex.quote(str(file.parent.parent)))


def _export(folder: str) -> str:
    return f"export EDGEFL_PATH={folder}${{EDGEFL_PATH:+:$EDGEFL_PATH}}"
