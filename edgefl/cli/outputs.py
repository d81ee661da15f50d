"""Files that commands write where ``--out`` says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from edgefl.core.errors import UserError


def check_out(out: Path, suffixes: Sequence[str], *, force: bool) -> None:
    """Checks before anything is read that a file can be written.

    Args:
        out: the file.
        suffixes: what its name may end in, such as ".pdf".
        force: whether one that exists is replaced.

    Raises:
        UserError: the name ends otherwise, it is a folder, it exists, or its folder does not.
    """
    *others, last = suffixes
    if out.is_dir():
        raise UserError(f"{out} is a folder", where="--out", hint=f"try --out {out / 'FILE'}{suffixes[0]}")
    if out.suffix.lower() not in suffixes:
        listed = f"{', '.join(others)} or {last}" if others else last
        raise UserError(f"the file's name must end in {listed}; got {out.name}", where="--out")
    if out.exists() and not force:
        raise UserError(
            f"{out.name} already exists",
            where=str(out),
            hint="choose another name, or overwrite it with --force",
        )
    if not out.parent.is_dir():
        raise UserError(f"{out.parent} does not exist", where="--out", hint=f"mkdir -p {out.parent}")
