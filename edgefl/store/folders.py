"""The directories of runs and of groups of them: made for one command alone, found again, and removed.

A group has the runs of one sweep, and a list of them, written before the first begins. Nothing that a command
works on is removed, and no files that edgefl did not write.
"""

import datetime as dt
import hashlib
import json
import re
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from shlex import quote
from typing import Any

from edgefl.core.errors import RunError, UserError, nearest
from edgefl.core.files import atomically, on_disk
from edgefl.core.notes import note
from edgefl.store.locks import GROUP, LOCK, is_locked, locked

# The last has the SHA-256 of all files of a run that ended, as `sha256sum -c` reads it.
DATABASE, PLAN, HOST, STAMP = "run.sqlite", "plan.yaml", "host.json", "SHA256SUMS"
# What SQLite calls a database without a file.
IN_MEMORY = Path(":memory:")
# Tables of files, each in a folder of that name.
FILES = ("versions", "states", "outcomes")
_RUNS = Path("runs")
_TEMPORARY = r"(\.\d+-\d+\.tmp)?"
# The database, or what becomes it.
_MADE = re.compile(re.escape(DATABASE) + _TEMPORARY)
# What edgefl writes in a group's directory and in a run's, by the paths there.
_OF_GROUPS = r"group\.json|report\.html"
_OF_RUNS = (
    rf"{_OF_GROUPS}|host\.json|SHA256SUMS|traceback\.txt|plan\.yaml|run\.sqlite(-wal|-shm|-journal)?"
    rf"|({'|'.join(FILES)})(/\d+\.safetensors)?|tensorboard(/events\.out\.tfevents\..*)?"
    r"|export(/(global|client-\d+)(-\w+)?\.(onnx|md|bench\.json))?"
)
_LOCK = re.escape(LOCK)
_IN_USE = "nothing of it was removed; wait until it has ended"


@contextmanager
def claimed(out: Path | None, name: str) -> Iterator[Path]:
    """A directory for one command alone: a new or an empty one, or a new one under ``runs/``, named after it.

    At the end, what was made for it is removed as far as it is empty. Raises a ``UserError`` where it is not
    empty, in use, or cannot be written.
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

    Raises a ``UserError`` where there are none, and an ``OSError`` where no path can be that long.
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
    """Writes the list of a group's runs, by the names of their directories; raises ``RunError``."""
    data = {"name": name, "runs": list(runs)}
    atomically({folder / GROUP: json.dumps({**data, "sha256": _digest(data)}, indent=2).encode()})
    with suppress(OSError):
        on_disk(folder)


def _digest(data: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()


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
    """A group's name, and its runs by the names of their directories; a ``UserError`` if they are damaged."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        data = json.loads((folder / GROUP).read_text(encoding="utf-8"))
        if data.pop("sha256") == _digest(data):
            return data["name"], data["runs"]
    raise UserError(
        f"{folder.name}: {GROUP} is damaged", where=str(folder / GROUP), hint="resume its runs one by one"
    )


@dataclass(frozen=True)
class Removal:
    """A group, or a run, that can be removed.

    Attributes:
        within: the directory that was named, which is ``folder`` or holds it.
        runs: by where they really are, the directories of its runs as they were named; of a run its own.
    """

    folder: Path
    within: Path
    runs: dict[Path, Path]


def size_of(folder: Path) -> int:
    """The bytes of the files in a directory, as far as it can be read; no link is followed."""
    total = 0
    for path in folder.rglob("*"):
        # A command that works on it may just have replaced the file.
        with suppress(OSError):
            found = path.lstat()
            total += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return total


def removals(paths: Sequence[Path]) -> list[Removal]:
    """What is to be removed where runs, groups and folders of groups are given, each once.

    Raises a ``UserError`` where a path is none of these, a link, or in use, or holds the current directory or
    the home.
    """
    found: dict[Path, Removal] = {}
    for path in paths:
        for run in _made(path):
            folder = run.parent if run != path and is_group(run.parent) else run
            one = found.setdefault(folder.resolve(), Removal(folder, path, {}))
            if not is_group(run):
                one.runs.setdefault(run.resolve(), run)
    # A run whose group goes as well is the group's.
    removable = [one for real, one in found.items() if not any(parent in found for parent in real.parents)]
    for one in removable:
        with locked(one.folder, hint=_IN_USE):
            pass
    return removable


def _made(path: Path) -> list[Path]:
    """The runs in a directory; of a group that has none any more the group. Others are a ``UserError``."""
    hint = "name runs, groups or a folder of them"
    if path.is_symlink():
        what, hint = "is a link", "name the directory itself"
    elif not path.is_dir():
        what = "is a file, not a run" if path.exists() else "does not exist"
    elif holds := [one for one in (Path.cwd(), Path.home()) if one.resolve().is_relative_to(path.resolve())]:
        what = f"is or holds {holds[0]}"
    elif made := [run for run in made_in(path) if not run.is_symlink() and not run.parent.is_symlink()]:
        return made
    elif is_group(path):
        return [path]
    else:
        runs_in(path)
        what, hint = "holds links to runs and no run", ""
    raise UserError(f"{path} {what}; nothing was removed", where="RUN", hint=hint)


def discard(folder: Path) -> None:
    """Removes what there is of a run that could not be made, and its directory if nothing else is in it."""
    with suppress(OSError):
        _clear(folder, _OF_RUNS)


def remove(removal: Removal) -> int:
    """Removes a group or a run, and the folders around it if empty; gives the bytes that were freed.

    What edgefl did not write stays, with a note. Raises a ``UserError`` where a command works on it, before
    anything is removed, and a ``RunError`` where a file cannot be removed.
    """
    folder, before = removal.folder, size_of(removal.folder)
    group = folder.parent if is_group(folder.parent) else None
    with locked(folder, hint=_IN_USE):
        # A list that is damaged stays: its group cannot be resumed in any case.
        with suppress(UserError, OSError):
            run = folder.resolve()
            name, runs = read_group(run.parent)
            # Off the list first, so that nobody runs it again.
            if left := [other for other in runs if other != run.name]:
                write_group(run.parent, name, left)
            else:
                (run.parent / GROUP).unlink()
        try:
            for run in removal.runs.values():
                _clear(run, f"{_OF_RUNS}|{_LOCK}")
            _clear(folder, f"{_OF_GROUPS}|{_LOCK}")
        except OSError as error:
            raise RunError(f"cannot remove {error.filename}: {error.strerror}", where=str(folder)) from error
    for around in folder.parents:
        if (around == group or around.is_relative_to(removal.within)) and around.resolve() != Path.cwd():
            with suppress(OSError):
                if not is_locked(around):  # what a command that was killed has left
                    (around / LOCK).unlink(missing_ok=True)
                around.rmdir()
    if folder.exists():
        note(f"{folder} is left: something is in it that edgefl did not write")
    return before - size_of(folder)


def _clear(folder: Path, own: str) -> None:
    """Removes what edgefl wrote in a directory, and the directory unless something else is in it.

    Last what makes it a run or a group, so that a half can be removed again.
    """
    pattern = re.compile(f"({own}){_TEMPORARY}")
    found = [path for path in folder.rglob("*") if pattern.fullmatch(path.relative_to(folder).as_posix())]
    found.sort(key=lambda path: (path.name.startswith((DATABASE, GROUP)), -len(path.parts)))
    for path in found:
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
        elif not any(path.iterdir()):
            path.rmdir()
    if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
        folder.rmdir()
