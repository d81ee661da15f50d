"""The files that commands write: where they may be, and that none is overwritten unasked."""

from collections.abc import Sequence
from pathlib import Path

from edgefl.core.errors import UserError

_OTHER = "choose another --out"


def check_free(*paths: Path, force: bool) -> None:
    """Refuses to replace files that exist."""
    for path in paths:
        if path.exists() and not force:
            raise _refused(f"{path} exists", f"{_OTHER}, or overwrite it with --force")


def check_out(path: Path, example: str, *, force: bool, suffixes: Sequence[str]) -> None:
    """Refuses, before a run is read, a file that could not be written, or has another suffix."""
    if path.is_dir():
        raise _refused(f"{path} is a folder", f"try --out {path / example}")
    if path.exists() and not path.is_file():
        raise _refused(f"{path} is not a regular file", _OTHER)
    if path.suffix.lower() not in suffixes:
        *others, last = suffixes
        ends = f"{path.name} must end in {' or '.join(filter(None, (', '.join(others), last)))}"
        raise _refused(ends, f"try --out {path.parent / example}")
    if not path.parent.is_dir():
        raise _refused(f"there is no folder {path.parent}", f"mkdir -p {path.parent}")
    check_free(path, force=force)


def _refused(what: str, hint: str) -> UserError:
    return UserError(what, where="--out", hint=hint)
