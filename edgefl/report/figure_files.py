"""Files of figures: what they may be called, what is written into them, and which may be overwritten."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgefl.core.errors import UserError

SUFFIXES = (".pdf", ".svg", ".png")

METADATA: Mapping[str, Mapping[str, Any]] = {
    "pdf": {"Creator": "edgefl", "CreationDate": None},
    "svg": {"Creator": "edgefl", "Date": None},
    "png": {"Software": "edgefl"},
}
"""What Matplotlib writes into a file of each type: no date, so that the same runs give the same bytes."""

# By which a figure is known as one of ours, in each type of file.
_MARKS = (b"/Creator (edgefl)", b"<dc:title>edgefl</dc:title>", b"Software\0edgefl")
# Figures are smaller.
_MOST_BYTES = 100_000_000


def check_out(path: Path, *, force: bool) -> None:
    """Checks before a run is read that a figure can be written.

    Args:
        path: the file.
        force: whether to overwrite a file that is no figure of edgefl's.

    Raises:
        UserError: its name does not end in one of ``SUFFIXES``, it is a folder, in one that does not exist,
            or a file that is not to be overwritten.
    """
    *others, last = SUFFIXES
    if path.is_dir():
        raise UserError(f"{path} is a folder", where="--out", hint=f"try --out {path / 'figure.pdf'}")
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"{path.name} must end in {', '.join(others)} or {last}", where="--out")
    if not path.parent.is_dir():
        raise UserError(
            f"the folder {path.parent} does not exist", where="--out", hint=f"mkdir -p {path.parent}"
        )
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is not a regular file", where="--out", hint="choose another --out")
    if path.exists() and not force and not _is_figure(path):
        raise UserError(
            f"{path} exists and is not a figure of edgefl's",
            where="--out",
            hint="choose another --out, or overwrite it with --force",
        )


def _is_figure(path: Path) -> bool:
    """Whether edgefl made a file.

    Raises:
        UserError: it cannot be read.
    """
    try:
        content = b"" if path.stat().st_size > _MOST_BYTES else path.read_bytes()
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {error.strerror}", where="--out", hint="choose another --out"
        ) from error
    return any(mark in content for mark in _MARKS)
