"""The directories of runs and of groups of them: made for one command alone, and found again."""

from __future__ import annotations

import datetime as dt
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from shlex import quote

from edgefl.core.errors import UserError
from edgefl.store.locks import GROUP, LOCK, is_locked, locked

DATABASE, PLAN, HOST = "run.sqlite", "plan.yaml", "host.json"
# A database that is being made.
UNNAMED = f"{DATABASE}.tmp"
# Tables of files, each in a folder of that name.
FILES = ("versions", "states", "outcomes")


@contextmanager
def claimed(out: Path | None, name: str) -> Iterator[Path]:
    """A directory that no other command writes into meanwhile.

    At the end, what was made for it is removed as far as it is empty.

    Args:
        out: the directory, new or empty; None for a new one under ``runs/``.
        name: begins the new one's name.

    Raises:
        UserError: it is not empty, in use, or cannot be written.
    """
    made: list[Path] = []
    folder = _new_under(Path("runs"), name, made) if out is None else out
    try:
        if out is not None:
            _make(out, made)
        check_empty(folder)
        with locked(folder, hint="choose another --out"):
            # A command that was quicker may have ended before the lock was ours.
            check_empty(folder)
            yield folder
    finally:
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir()


def _new_under(parent: Path, name: str, made: list[Path]) -> Path:
    """A new directory, whoever else makes some at the same time."""
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%d-%H%M%S")
    if parent.exists() and not parent.is_dir():
        raise UserError(f"{parent} is a file; runs go into a directory of that name", hint="pass --out DIR")
    for suffix in chain([""], map("-{}".format, count(2))):
        folder = parent / f"{name}-{stamp}{suffix}"
        try:
            parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise _cannot_create(folder, error) from error
        made.append(folder)
        return folder
    raise AssertionError("names do not run out")


def _make(folder: Path, made: list[Path]) -> None:
    """Makes a directory and those above it, as far as they are missing; ``made`` gets the new ones."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        try:
            path.mkdir()
        except FileExistsError:
            # By another command, at the same time; or a dangling link.
            if not path.is_dir():
                raise UserError(f"cannot create {path}: it is a link to nowhere", where=str(path)) from None
        except OSError as error:
            raise _cannot_create(path, error) from error
        else:
            made.append(path)


def check_empty(folder: Path) -> None:
    """Checks that a directory has nothing in it, except perhaps the lock file.

    Raises:
        UserError: it has, or it cannot be read.
    """
    try:
        empty = all(path.name == LOCK for path in folder.iterdir())
    except OSError as error:
        raise _cannot_create(folder, error) from error
    if not empty:
        raise UserError(
            f"{folder} is not empty", where=str(folder), hint="choose another --out; nothing was changed"
        )


def fresh_folder(folder: Path) -> None:
    """Makes a directory, unless there is an empty one.

    Raises:
        UserError: it exists and is not empty, or cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_create(folder, error) from error
    check_empty(folder)


def _cannot_create(folder: Path, error: OSError) -> UserError:
    return UserError(f"cannot create {folder}: {error.strerror}", where=str(folder))


def is_run(folder: Path) -> bool:
    """Whether a directory holds one run that has begun."""
    return (folder / DATABASE).is_file() and not is_planned(folder)


def is_planned(folder: Path) -> bool:
    """Whether a directory holds one run that was planned and has not begun."""
    file = f"{(folder / DATABASE).resolve().as_uri()}?mode=ro"
    # One that cannot be read is told to be damaged when it is read.
    with suppress(sqlite3.Error), closing(sqlite3.connect(file, uri=True)) as database:
        row = database.execute("SELECT value FROM meta WHERE key = 'status'").fetchone()
        return bool(row == ('"planned"',))
    return False


def discard(folder: Path) -> None:
    """Removes what a run that never began made in its directory, and the directory if it is empty."""
    for name in (UNNAMED, DATABASE, PLAN):
        with suppress(OSError):
            (folder / name).unlink()
    for path in (*(folder / name for name in FILES), folder):
        with suppress(OSError):
            path.rmdir()


# Runs of a group that a hint names.
_NAMED = 6


def runs_in(folder: Path) -> list[Path]:
    """The runs that have begun in a group, or in a folder of groups, in order; a run is a group of one.

    Raises:
        UserError: there are none.
        OSError: the path is none, as one that is too long.
    """
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        folder.lstat()
    made = [run for run in made_in(folder) if (run / DATABASE).is_file()]
    if runs := [run for run in made if not is_planned(run)]:
        return runs
    if is_locked(folder):
        raise UserError(
            f"{folder} holds no run yet", where=str(folder), hint="its first run is still being planned"
        )
    if made:
        raise UserError(
            f"{folder} holds no run that has begun",
            where=str(folder),
            hint=f"begin with edgefl run --resume {quote(str(folder))}",
        )
    known = [run.name for run in made_in(folder.parent)] if (folder.parent / GROUP).is_file() else []
    more = ", ..." if len(known) > _NAMED else ""
    raise UserError(
        f"{folder} is neither a run nor a group of runs",
        where=str(folder),
        hint=f"its group has {', '.join(known[:_NAMED])}{more}"
        if known
        else "give a directory that `edgefl run` made",
    )


def made_in(folder: Path) -> list[Path]:
    """The directories of runs as of ``runs_in``, begun or not, or half-made; there may be none."""
    if _is_made(folder):
        return [folder]
    found: list[Path] = []
    for child in folders_in(folder):
        found += [child] if _is_made(child) else filter(_is_made, folders_in(child))
    return sorted(found, key=lambda path: by_number(path.relative_to(folder)))


def _is_made(folder: Path) -> bool:
    """Whether a run was made there; not in a directory that cannot be read."""
    with suppress(OSError):
        return any((folder / name).is_file() for name in (DATABASE, UNNAMED))
    return False


def folders_in(folder: Path) -> list[Path]:
    """The directories in one; none in one that cannot be read."""
    with suppress(OSError):
        return [path for path in folder.iterdir() if path.is_dir()]
    return []


def by_number(path: Path) -> list[tuple[int, str]]:
    """Sorts 100-x after 99-x."""
    return [(int(digits or 0), text) for digits, text in re.findall(r"(\d+)|(\D+)", str(path))]
