"""Removes runs and groups whole: nothing that a command works on, and none in which others' files lie."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from edgefl.core.errors import RunError, UserError
from edgefl.store.folders import DATABASE, FILES, is_group, leave_group, made_in, runs_in
from edgefl.store.locks import GROUP, LOCK, is_locked, locked

# What edgefl writes in a group's directory and in a run's, by the paths there.
_OF_GROUPS = r"group\.json|\.edgefl\.lock|report\.html"
_OF_RUNS = (
    rf"{_OF_GROUPS}|host\.json|SHA256SUMS|traceback\.txt|plan\.yaml|run\.sqlite(\.tmp)?(-wal|-shm|-journal)?"
    rf"|({'|'.join(FILES)})(/\d+\.safetensors)?|tensorboard(/events\.out\.tfevents\..*)?"
    r"|export(/(global|client-\d+)(-\w+)?\.(onnx|md|bench\.json))?"
)
_TEMPORARY = r"(\.\d+-\d+\.tmp)?"


@dataclass(frozen=True)
class Removal:
    """A group, or a run, that can be removed.

    Attributes:
        folder: its directory.
        within: the directory that was named, which is ``folder`` or holds it.
        runs: the directories of its runs; of a run its own.
        size_bytes: of all that is in it.
    """

    folder: Path
    within: Path
    runs: tuple[Path, ...]
    size_bytes: int

    def held(self) -> AbstractContextManager[None]:
        """Locks it.

        Raises:
            UserError: a command works on it.
        """
        return locked(self.folder, hint="nothing of it was removed; wait until it has ended")


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

    Raises:
        UserError: a path is none of these, or a link, or holds the current directory or the home, or files
            that edgefl did not write.
    """
    for path in paths:
        _check(path)
    found: dict[Path, Removal] = {}
    for path in paths:
        for folder, runs in _units(path).items():
            _check_own(folder, runs)
            found.setdefault(folder.resolve(), Removal(folder, path, tuple(runs), size_of(folder)))
    # A run whose group goes as well is the group's.
    return [one for real, one in found.items() if not any(parent in found for parent in real.parents)]


def _check(path: Path) -> None:
    """Refuses what cannot be meant.

    Raises:
        UserError: saying why.
    """
    what, hint = "", "name runs, groups or a folder of them"
    if path.is_symlink():
        what, hint = "is a link", "name the directory itself"
    elif not path.is_dir():
        what = "is a file, not a run" if path.exists() else "does not exist"
    elif holds := [one for one in (Path.cwd(), Path.home()) if one.resolve().is_relative_to(path.resolve())]:
        what = f"is or holds {holds[0]}"
    if what:
        raise UserError(f"{path} {what}; nothing was removed", where="RUN", hint=hint)


def _units(path: Path) -> dict[Path, list[Path]]:
    """The groups in a directory, and its runs that have none, each with its runs.

    Raises:
        UserError: it has none.
    """
    made = [run for run in made_in(path) if not run.is_symlink() and not run.parent.is_symlink()]
    if not made and not is_group(path):
        runs_in(path)
        raise UserError(f"{path} holds links to runs and no run; nothing was removed", where="RUN")
    units: dict[Path, list[Path]] = {} if made else {path: []}
    for run in made:
        is_own = run != path and is_group(run.parent)
        units.setdefault(run.parent if is_own else run, []).append(run)
    return units


def _check_own(folder: Path, runs: Sequence[Path]) -> None:
    """Refuses a group, or a run, where something lies that edgefl did not write.

    Raises:
        UserError: it does, or a directory cannot be read.
    """
    for place, own in ({folder: _OF_GROUPS} | dict.fromkeys(runs, _OF_RUNS)).items():
        found = (path for path in _below(place) if place in runs or not {path, *path.parents} & {*runs})
        if others := [path for path in found if not _is_own(path.relative_to(place), own)]:
            raise UserError(
                f"edgefl did not write {min(others)}; nothing was removed",
                where="RUN",
                hint="move it elsewhere, or remove it yourself",
            )


def _is_own(path: Path, own: str) -> bool:
    return re.fullmatch(f"({own}){_TEMPORARY}", path.as_posix()) is not None


def discard(folder: Path) -> None:
    """Removes what there is of a run that could not be made, and its directory if nothing else is in it."""
    found = [path for path in folder.rglob("*") if _is_own(path.relative_to(folder), _OF_RUNS)]
    for path in (*sorted(found, reverse=True), folder):
        with suppress(OSError):
            if path.name != LOCK:
                path.rmdir() if path.is_dir() else path.unlink()


def _below(folder: Path) -> Iterator[Path]:
    """All that is in a directory, at any depth."""

    def refuse(error: OSError) -> None:
        raise UserError(f"cannot read {error.filename}: {error.strerror}", where=str(folder)) from error

    for root, folders, files in os.walk(folder, onerror=refuse):
        yield from (Path(root, name) for name in (*folders, *files))


def remove(removal: Removal) -> int:
    """Removes a group or a run, of which nobody else may hold the lock; the folders around it if empty.

    Returns:
        The bytes that it took.

    Raises:
        UserError: a command works on it; nothing was removed.
        RunError: a file cannot be removed.
    """
    folder, group = removal.folder, removal.folder.parent if is_group(removal.folder.parent) else None
    with removal.held():
        leave_group(folder)
        try:
            _remove(folder)
        except OSError as error:
            raise RunError(f"cannot remove {error.filename}: {error.strerror}", where=str(folder)) from error
    for around in folder.parents:
        if (around == group or around.is_relative_to(removal.within)) and around.resolve() != Path.cwd():
            with suppress(OSError):
                if not is_locked(around):  # what a command that was killed has left
                    (around / LOCK).unlink(missing_ok=True)
                around.rmdir()
    return removal.size_bytes


def _remove(folder: Path) -> None:
    """Removes a directory; last what makes it a run or a group, so that a half can be removed again."""
    for path in sorted(folder.iterdir(), key=lambda path: path.name.startswith((DATABASE, GROUP))):
        if path.is_dir() and not path.is_symlink():
            _remove(path)
        else:
            path.unlink(missing_ok=True)
    folder.rmdir()
