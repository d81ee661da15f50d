"""The directories of runs and of groups of them: made for one command alone, and found again."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from shlex import quote

from edgefl.core.errors import UserError
from edgefl.store.locks import GROUP, LOCK, is_locked, locked

DATABASE, PLAN = "run.sqlite", "plan.yaml"
# The database of a run that has not begun, and one that is being made.
PLANNED, UNNAMED = "planned.sqlite", f"{DATABASE}.tmp"
# Held free for the end of the run: status and reason must be written where a disk became full.
_RESERVE, _RESERVE_BYTES = "reserve.tmp", 64 * 1024
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
    """Whether a directory holds one run."""
    return (folder / DATABASE).is_file()


def is_planned(folder: Path) -> bool:
    """Whether a directory holds one run that was planned and has not begun."""
    return (folder / PLANNED).is_file() and not is_run(folder)


def begin(folder: Path) -> None:
    """Makes a run of what was planned; one that has begun stays as it is."""
    if is_planned(folder):
        (folder / PLANNED).replace(folder / DATABASE)


def discard(folder: Path) -> None:
    """Removes what a run that never began made in its directory, and the directory if it is empty."""
    for name in (UNNAMED, PLANNED, _RESERVE, PLAN):
        with suppress(OSError):
            (folder / name).unlink()
    for name in FILES:
        with suppress(OSError):
            (folder / name).rmdir()
    with suppress(OSError):
        folder.rmdir()


def hold_free(folder: Path) -> None:
    """Takes some room on the disk, for the end of the run.

    Raises:
        OSError: there is none.
    """
    (folder / _RESERVE).write_bytes(os.urandom(_RESERVE_BYTES))


def free(folder: Path) -> None:
    """Gives the room back."""
    with suppress(OSError):
        (folder / _RESERVE).unlink()


# Runs of a group that a hint names.
_NAMED = 6


def runs_in(folder: Path) -> list[Path]:
    """The runs in a group, or in a folder of groups, in order; a run's directory is a group of one.

    Raises:
        UserError: there are none.
    """
    if is_run(folder):
        return [folder]
    runs = (
        sorted(
            (path.parent for level in ("*", "*/*") for path in folder.glob(f"{level}/{DATABASE}")),
            key=lambda path: by_number(path.relative_to(folder)),
        )
        if folder.is_dir()
        else []
    )
    if not runs and is_locked(folder):
        raise UserError(
            f"{folder} holds no run yet", where=str(folder), hint="its first run is still being planned"
        )
    if not runs and any(is_planned(run) for run in made_in(folder)):
        raise UserError(
            f"{folder} holds no run that has begun",
            where=str(folder),
            hint=f"begin with edgefl run --resume {quote(str(folder))}",
        )
    if not runs:
        known = [run.name for run in made_in(folder.parent)] if (folder.parent / GROUP).is_file() else []
        more = ", ..." if len(known) > _NAMED else ""
        raise UserError(
            f"{folder} is neither a run nor a group of runs",
            where=str(folder),
            hint=f"its group has {', '.join(known[:_NAMED])}{more}"
            if known
            else "give a directory that `edgefl run` made",
        )
    return runs


def made_in(folder: Path) -> list[Path]:
    """The directories of runs as of ``runs_in``, and of runs that have not begun; there may be none."""
    if _is_made(folder):
        return [folder]
    found: list[Path] = []
    for child in folders_in(folder):
        found += [child] if _is_made(child) else filter(_is_made, folders_in(child))
    return sorted(found, key=lambda path: by_number(path.relative_to(folder)))


def _is_made(folder: Path) -> bool:
    """Whether a run was made there; not in a directory that cannot be read."""
    with suppress(OSError):
        return any((folder / name).is_file() for name in (DATABASE, PLANNED, UNNAMED))
    return False


def folders_in(folder: Path) -> list[Path]:
    """The directories in one; none in one that cannot be read."""
    with suppress(OSError):
        return [path for path in folder.iterdir() if path.is_dir()]
    return []


def by_number(path: Path) -> list[tuple[int, str]]:
    """Sorts 100-x after 99-x."""
    return [(int(digits or 0), text) for digits, text in re.findall(r"(\d+)|(\D+)", str(path))]
