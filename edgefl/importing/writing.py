"""Where an imported profile goes, and the command that uses it next."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from edgefl.core import catalogue
from edgefl.core.errors import UserError, short
from edgefl.core.files import all_atomically

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


def name_of(out: Path, name: str | None) -> str:
    """The profile's name: the folder's, unless another is given.

    Raises:
        UserError: it cannot be one, or belongs to another profile.
    """
    where = "--out" if name is None else "--name"
    found = out.resolve().name if name is None else name
    if not _NAME.fullmatch(found):
        raise UserError(
            f"invalid profile name {short(found)!r}",
            where=where,
            hint="give up to 100 lower-case letters, digits, '-', '_' and '.' with --name",
        )
    known = catalogue.entries("profiles").get(found)
    if known is not None and known.path.resolve() != (out / "profiles" / f"{found}.yaml").resolve():
        raise UserError(
            f"the name {found!r} belongs to another profile",
            where=str(known.path),
            hint="give the profile another one with --name",
        )
    return found


def write(out: Path, files: Mapping[str, bytes]) -> None:
    """Writes files below a folder: all of them, or none.

    Raises:
        UserError: a folder cannot be made.
        RunError: a file cannot be written.
    """
    with _made({(out / file).parent for file in files}):
        all_atomically({out / file: content for file, content in files.items()})


@contextmanager
def _made(folders: set[Path]) -> Iterator[None]:
    """Makes folders, and on failure removes those that were not there."""
    missing = {one for folder in folders for one in (folder, *folder.parents) if not one.exists()}
    try:
        for folder in sorted(folders):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UserError(
                    f"cannot make the folder {folder}: {error.strerror}", where="--out"
                ) from error
        yield
    except BaseException:
        for folder in sorted(missing, reverse=True):
            with suppress(OSError):
                folder.rmdir()
        raise


def next_step(out: Path, name: str) -> str:
    """The command that runs the profile, for a shell."""
    run = f"edgefl run quickstart --set fleet={name}"
    if out.resolve() in {folder.resolve() for folder in (Path(), *catalogue.user_folders())}:
        return run
    return f"EDGEFL_PATH={shlex.quote(str(out))}${{EDGEFL_PATH:+:$EDGEFL_PATH}} {run}"
