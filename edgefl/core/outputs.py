"""The files that commands write: where they may be, and which may be overwritten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from edgefl.core.errors import UserError

_OTHER = "choose another --out"


class Own(NamedTuple):
    """Files that a command overwrites without being forced to.

    Attributes:
        what: what they are, such as "a report page".
        is_one: whether a file is one; it may raise OSError.
    """

    what: str
    is_one: Callable[[Path], bool]


def check_out(
    path: Path, example: str, *, force: bool, suffixes: Sequence[str], own: Own | None = None
) -> None:
    """Checks before a run is read that a file can be written.

    Args:
        path: the file.
        example: a file's name that will do.
        force: whether to overwrite whatever file is there.
        suffixes: what its name may end in.
        own: the files that are overwritten anyway; None for none.

    Raises:
        UserError: it is a folder, in one that does not exist, of another name, or a file that is not to be
            overwritten.
    """
    if path.is_dir():
        raise _refused(f"{path} is a folder", f"try --out {path / example}")
    if path.exists() and not path.is_file():
        raise _refused(f"{path} is not a regular file", _OTHER)
    if path.suffix.lower() not in suffixes:
        *others, last = suffixes
        ends = f"{path.name} must end in {' or '.join(filter(None, (', '.join(others), last)))}"
        raise _refused(ends, f"try --out {path.parent / example}")
    if not path.parent.exists():
        raise _refused(f"the folder {path.parent} does not exist", f"mkdir -p {path.parent}")
    if not path.parent.is_dir():
        raise _refused(f"{path.parent} is not a folder", _OTHER)
    if path.exists() and not force and not (own and _is_one(path, own)):
        is_not = f" and is not {own.what}" if own else ""
        raise _refused(f"{path} exists{is_not}", f"{_OTHER}, or overwrite it with --force")


def _is_one(path: Path, own: Own) -> bool:
    try:
        return own.is_one(path)
    except OSError as error:
        raise _refused(f"cannot read {path}: {error.strerror}", _OTHER) from error


def _refused(what: str, hint: str = "") -> UserError:
    return UserError(what, where="--out", hint=hint)
