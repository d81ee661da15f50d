"""Removes runs and groups: nothing that a command works on, and no files that edgefl did not write."""

import re
import stat
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from edgefl.core.errors import RunError, UserError
from edgefl.core.notes import note
from edgefl.store.folders import DATABASE, FILES, is_group, leave_group, made_in, runs_in
from edgefl.store.locks import GROUP, LOCK, is_locked, locked

# What edgefl writes in a group's directory and in a run's, by the paths there.
_OF_GROUPS = r"group\.json|report\.html"
_OF_RUNS = (
    rf"{_OF_GROUPS}|host\.json|SHA256SUMS|traceback\.txt|plan\.yaml|run\.sqlite(-wal|-shm|-journal)?"
    rf"|({'|'.join(FILES)})(/\d+\.safetensors)?|tensorboard(/events\.out\.tfevents\..*)?"
    r"|export(/(global|client-\d+)(-\w+)?\.(onnx|md|bench\.json))?"
)
_TEMPORARY = r"(\.\d+-\d+\.tmp)?"
_LOCK = re.escape(LOCK)


@dataclass(frozen=True)
class Removal:
    """A group, or a run, that can be removed.

    Attributes:
        folder: its directory.
        within: the directory that was named, which is ``folder`` or holds it.
        runs: the directories of its runs, as they were named; of a run its own.
    """

    folder: Path
    within: Path
    runs: list[Path]

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
        UserError: a path is none of these, or a link, or holds the current directory or the home.
    """
    found: dict[Path, Removal] = {}
    seen: set[tuple[Path, Path]] = set()
    for path in paths:
        for run in _made(path):
            folder = run.parent if run != path and is_group(run.parent) else run
            one = found.setdefault(folder.resolve(), Removal(folder, path, []))
            pair = folder.resolve(), run.resolve()
            if pair not in seen and not is_group(run):
                seen.add(pair)
                one.runs.append(run)
    # A run whose group goes as well is the group's.
    return [one for real, one in found.items() if not any(parent in found for parent in real.parents)]


def _made(path: Path) -> list[Path]:
    """The runs in a directory; of a group that has none any more the group.

    Raises:
        UserError: it has none, or cannot be meant.
    """
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
    """Removes a group or a run, of which nobody else may hold the lock; the folders around it if empty.

    What edgefl did not write stays, with a note.

    Returns:
        The bytes that were freed.

    Raises:
        UserError: a command works on it; nothing was removed.
        RunError: a file cannot be removed.
    """
    folder, before = removal.folder, size_of(removal.folder)
    group = folder.parent if is_group(folder.parent) else None
    with removal.held():
        leave_group(folder)
        try:
            for run in removal.runs:
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

    Raises:
        OSError: a file cannot be removed.
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
