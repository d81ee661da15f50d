"""The file that a page is written to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from edgefl.core.errors import UserError
from edgefl.core.files import atomically
from edgefl.report.page.html import GENERATOR

# A page is known by its first bytes.
_HEAD = 8192
_LONGEST_NAME = 100


def place(folders: Sequence[Path], out: Path | None, *, force: bool) -> Path:
    """Where a page of these runs goes: ``out``, or a file here that has the name of the first folder.

    Args:
        folders: the runs or groups, as they were given.
        out: the file; None to name it.
        force: whether to overwrite a file that is no page of edgefl's.

    Raises:
        UserError: it is a folder, in one that does not exist, or a file that is not to be overwritten.
    """
    path = Path(_name(folders)) if out is None else out
    if path.is_dir():
        raise UserError(f"{path} is a folder", where="--out", hint=f"try --out {path / _name(folders)}")
    if not path.parent.is_dir():
        raise UserError(
            f"the folder {path.parent} does not exist", where="--out", hint=f"mkdir -p {path.parent}"
        )
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is not a regular file", where="--out", hint="choose another --out")
    if path.exists() and not force and not _is_page(path):
        raise UserError(
            f"{path} exists and is not a report page",
            where="--out",
            hint="choose another --out, or overwrite it with --force",
        )
    return path


def _name(folders: Sequence[Path]) -> str:
    """The first folder's name, and how many more there are."""
    first = re.sub(r"[^\w.-]+", "-", folders[0].resolve().name).strip("-.")[:_LONGEST_NAME] or "runs"
    return f"{first}{f'-and-{len(folders) - 1}-more' if len(folders) > 1 else ''}.html"


def _is_page(path: Path) -> bool:
    """Whether edgefl made a file.

    Raises:
        UserError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return GENERATOR.encode() in file.read(_HEAD)
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {error.strerror}", where="--out", hint="choose another --out"
        ) from error


def write(path: Path, text: str) -> int:
    """Writes a page, and returns its size in bytes.

    Raises:
        RunError: it cannot be written; a page that is there is unchanged.
    """
    content = text.encode("utf-8")
    atomically(path, content)
    return len(content)
