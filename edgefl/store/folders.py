"""The directories of runs and of groups of them: made for one command alone, and found again.

A group has the runs of one sweep, and a list of them, written before the first begins.
"""

import datetime as dt
import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from shlex import quote
from typing import Any

from edgefl.core.errors import UserError, nearest
from edgefl.core.files import atomically, on_disk
from edgefl.store.locks import GROUP, LOCK, is_locked, locked

DATABASE, PLAN, HOST = "run.sqlite", "plan.yaml", "host.json"
# What SQLite calls a database without a file.
IN_MEMORY = Path(":memory:")
# Tables of files, each in a folder of that name.
FILES = ("versions", "states", "outcomes")
_RUNS = Path("runs")
# The database, or what becomes it.
_MADE = re.compile(rf"{re.escape(DATABASE)}(\.\d+-\d+\.tmp)?")


@contextmanager
def claimed(out: Path | None, name: str) -> Iterator[Path]:
    """A directory for one command alone: a new or an empty one, or a new one under ``runs/``, named after it.

    At the end, what was made for it is removed as far as it is empty.

    Raises:
        UserError: it is not empty, in use, or cannot be written.
    """
    around = _RUNS if out is None else out
    made = [path for path in (around, *around.parents) if not path.exists()]
    folder = around
    try:
        with _creating(around):
            around.mkdir(parents=True, exist_ok=True)
        if out is None:
            folder = _new_run(name)
            made = [folder, *made]
        with locked(folder, hint="choose another --out"):
            with _creating(folder):
                empty = all(path.name == LOCK for path in folder.iterdir())
            if not empty:
                hint = "choose another --out; nothing was changed"
                raise UserError(f"{folder} is not empty", where=str(folder), hint=hint)
            yield folder
    finally:
        for path in made:
            with suppress(OSError):
                path.rmdir()


def _new_run(name: str) -> Path:
    """A new directory under ``runs/``, whoever else makes some at the same time."""
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%d-%H%M%S")
    for suffix in chain([""], map("-{}".format, count(2))):
        folder = _RUNS / f"{name}-{stamp}{suffix}"
        with _creating(folder), suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise AssertionError("names do not run out")


@contextmanager
def _creating(folder: Path) -> Iterator[None]:
    """Tells which directory cannot be made, as a UserError."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot create {folder}: {error.strerror}", where=str(folder)) from error


def is_run(folder: Path) -> bool:
    """Whether a directory holds one run that has begun: not one that is only planned."""
    file = folder / DATABASE
    # One that cannot be read is told to be damaged when it is read.
    with suppress(sqlite3.Error):
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
            row = database.execute("SELECT value FROM meta WHERE key = 'status'").fetchone()
        return bool(row != ('"planned"',))
    return file.is_file()


def runs_in(folder: Path) -> list[Path]:
    """The runs that have begun in a group, or in a folder of groups, in order; a run is a group of one.

    Raises:
        UserError: there are none.
        OSError: the path is none, as one that is too long.
    """
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        folder.lstat()
    made = made_in(folder)
    if runs := [run for run in made if is_run(run)]:
        return runs
    what, hint = "is neither a run nor a group of runs", "give a directory that `edgefl run` made"
    if is_locked(folder):
        what, hint = "holds no run yet", "its first run is still being planned"
    elif made:
        what = "holds no run that has begun"
        hint = f"begin with edgefl run --resume {quote(str(folder))}"
    elif (folder.parent / GROUP).is_file():
        hint = nearest(folder.name, [run.name for run in made_in(folder.parent)])
    raise UserError(f"{folder} {what}", where=str(folder), hint=hint)


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
        return any(path.is_file() and _MADE.fullmatch(path.name) for path in folder.glob(f"{DATABASE}*"))
    return False


def folders_in(folder: Path) -> list[Path]:
    """The directories in one; none in one that cannot be read."""
    with suppress(OSError):
        return [path for path in folder.iterdir() if path.is_dir()]
    return []


def by_number(path: Path) -> list[tuple[int, str]]:
    """Sorts 100-x after 99-x."""
    return [(int(digits or 0), text) for digits, text in re.findall(r"(\d+)|(\D+)", str(path))]


def write_group(folder: Path, name: str, runs: Sequence[str]) -> None:
    """Writes the list of a group's runs, by the names of their directories.

    Raises:
        RunError: it cannot be written.
    """
    data = {"name": name, "runs": list(runs)}
    atomically({folder / GROUP: json.dumps({**data, "sha256": _digest(data)}, indent=2).encode()})
    with suppress(OSError):
        on_disk(folder)


def _digest(data: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()


def leave_group(run: Path) -> None:
    """Takes a run that is to be removed off its group's list, so that nobody runs it again.

    The list goes with the last run. One that is damaged stays: its group cannot be resumed in any case.

    Raises:
        RunError: the list cannot be written.
    """
    run = run.resolve()
    with suppress(UserError, OSError):
        name, runs = read_group(run.parent)
        if left := [other for other in runs if other != run.name]:
            write_group(run.parent, name, left)
        else:
            (run.parent / GROUP).unlink()


def is_group(folder: Path) -> bool:
    """Whether a directory holds several runs of one command, all of which were planned."""
    return (folder / GROUP).is_file()


def lost_from(folder: Path) -> dict[Path, str]:
    """The runs that a group, or the groups in a folder, list and no longer have, and why; see ``runs_in``."""
    found: dict[Path, str] = {}
    for group in [folder, *folders_in(folder)]:
        # A list that is damaged, or may not be read, names nobody.
        with suppress(UserError, OSError):
            for run in map(group.joinpath, read_group(group)[1]):
                if not (run / DATABASE).is_file():
                    gone = "it is a link to nowhere" if run.is_symlink() else "its folder is gone"
                    found[run] = f"it has no {DATABASE}" if run.is_dir() else gone
    return found


def read_group(folder: Path) -> tuple[str, list[str]]:
    """A group's name, and its runs by the names of their directories.

    Raises:
        UserError: the list is damaged.
    """
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        data = json.loads((folder / GROUP).read_text(encoding="utf-8"))
        if data.pop("sha256") == _digest(data):
            return data["name"], data["runs"]
    raise UserError(
        f"{folder.name}: {GROUP} is damaged", where=str(folder / GROUP), hint="resume its runs one by one"
    )
