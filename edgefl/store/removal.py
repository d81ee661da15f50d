"""Removes runs and groups: what edgefl wrote, nothing else, and nothing that a command works on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from edgefl.core.errors import RunError, UserError
from edgefl.store.folders import DATABASE, FILES, PLAN, UNNAMED, made_in, runs_in
from edgefl.store.groups import is_group, leave_group, read_group
from edgefl.store.locks import GROUP, LOCK, group_of, is_locked, locked, locked_run

_TENSORS = r"\d+\.safetensors"
_TEMPORARY = r"\.\d+-\d+\.tmp"
_DATABASES = [
    rf"{name}(-wal|-shm|-journal)?" for name in map(re.escape, (UNNAMED, DATABASE))
]  # fmt: skip
_PAGE = "report.html"
_OTHERS = ["host.json", "SHA256SUMS", "traceback.txt", PLAN, _PAGE]
# By folder in a run's directory: the names of the files that edgefl writes there, the databases last.
_OWN = {
    **{name: [_TENSORS] for name in FILES},
    "export": [r"(global|client-\d+)(-\w+)?\.(onnx|md|bench\.json)"],
    "tensorboard": [r"events\.out\.tfevents\..*"],
    "": [*map(re.escape, _OTHERS), *_DATABASES],
}
_OF_GROUP = {"": [re.escape(GROUP), re.escape(_PAGE)]}
_WAIT = "nothing of it was removed; wait until it has ended"


class File(NamedTuple):
    """A file that edgefl wrote, and its bytes."""

    path: Path
    size: int


@dataclass(frozen=True)
class Removal:
    """A group, or a run, that can be removed.

    Attributes:
        folder: its directory.
        within: the directory that was named, which is ``folder`` or holds it.
        runs: the directories of its runs; of a run its own.
        files: what edgefl wrote there, in the order in which it goes.
        kept: all else that is there; a folder of which nothing is edgefl's stands for what is in it.
    """

    folder: Path
    within: Path
    runs: tuple[Path, ...]
    files: tuple[File, ...]
    kept: tuple[Path, ...]

    @classmethod
    def of(cls, folder: Path, within: Path, runs: Sequence[Path]) -> Removal:
        """Looks at a group or a run.

        Raises:
            UserError: a directory cannot be read.
        """
        found = [contents(run) for run in runs]
        if is_group(folder):
            found.append(contents(folder, _OF_GROUP, except_for=runs))
        files = tuple(file for own, _ in found for file in own)
        return cls(folder, within, tuple(runs), files, tuple(path for _, kept in found for path in kept))

    @property
    def size_bytes(self) -> int:
        """Of the files that go."""
        return sum(file.size for file in self.files)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Locks it: a group with its runs; a run, and where it has a group, that, whose list it leaves.

        Raises:
            UserError: a command works on it.
        """
        group = group_of(self.folder)
        if is_group(self.folder):
            with locked(self.folder, hint=_WAIT):
                yield
        elif is_group(group):
            with locked(group, hint=_WAIT), locked(self.folder, hint=_WAIT):
                yield
        else:
            with locked_run(self.folder, hint=_WAIT):
                yield


def contents(
    folder: Path, own: dict[str, list[str]] = _OWN, except_for: Iterable[Path] = ()
) -> tuple[list[File], list[Path]]:
    """What is in a run's directory: the files that edgefl wrote, and all else. No link is followed.

    Args:
        folder: the directory.
        own: by folder in it, what the names of edgefl's files match.
        except_for: folders in it to leave out.

    Raises:
        UserError: the directory cannot be read.
    """
    files: list[File] = []
    kept: list[Path] = []
    left_out = {LOCK, *(path.name for path in except_for)}
    for place, patterns in own.items():
        names = [re.compile(f"({pattern})({_TEMPORARY})?") for pattern in patterns]
        ranked: list[tuple[int, File]] = []
        for entry in sorted(_entries(folder / place), key=lambda entry: entry.name):
            if not place and (entry.name in left_out or (entry.name in own and _is_folder(entry))):
                continue
            rank = next((rank for rank, name in enumerate(names) if name.fullmatch(entry.name)), None)
            if rank is None or not entry.is_file(follow_symlinks=False):
                kept.append(Path(entry.path))
            else:
                ranked.append((rank, File(Path(entry.path), _size(entry))))
        files += [file for _, file in sorted(ranked)]
    return files, kept


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    if folder.is_symlink():
        return []
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise UserError(f"cannot read {folder}: {error.strerror}", where=str(folder)) from error


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        # A command that works on it has just replaced the file.
        return 0


def removals(paths: Sequence[Path]) -> list[Removal]:
    """What is to be removed where runs, groups and folders of groups are given, each once.

    Raises:
        UserError: a path is none of these, or a link, or holds the current directory or the home.
    """
    for path in paths:
        _check(path)
    found: dict[Path, Removal] = {}
    for path in paths:
        for folder, runs in _units(path):
            found.setdefault(folder.resolve(), Removal.of(folder, path, runs))
    # A run whose group goes as well is the group's.
    return [one for real, one in found.items() if not any(parent in found for parent in real.parents)]


def _check(path: Path) -> None:
    """Refuses what cannot be meant.

    Raises:
        UserError: saying why.
    """
    real = path.resolve()
    for place, what, hint in (
        (Path.cwd(), "the current directory", "change to another directory first"),
        (Path.home(), "your home directory", "name runs or groups"),
    ):
        if real in {place.resolve(), *place.resolve().parents}:
            is_it = "is" if real == place.resolve() else "holds"
            raise UserError(f"{path} {is_it} {what}; nothing was removed", where="RUN", hint=hint)
    if path.is_symlink():
        raise UserError(
            f"{path} is a link; nothing was removed", where="RUN", hint="name the directory itself"
        )
    if not path.is_dir():
        is_it = "is a file, not a run" if path.exists() else "does not exist"
        raise UserError(f"{path} {is_it}; nothing was removed", where="RUN")


def _units(path: Path) -> Iterator[tuple[Path, list[Path]]]:
    """The groups in a directory, and its runs that have none, each with its runs.

    Raises:
        UserError: it has none.
    """
    made = [run for run in made_in(path) if not run.is_symlink() and not run.parent.is_symlink()]
    if not made and not is_group(path):
        runs_in(path)
        raise UserError(f"{path} holds links to runs and no run; nothing was removed", where="RUN")
    of: dict[Path, list[Path]] = {}
    for run in made:
        is_own = run != path and is_group(run.parent)
        of.setdefault(run.parent if is_own else run, []).append(run)
    if not made:
        of[path] = []
    yield from of.items()


def remove(removal: Removal) -> int:
    """Removes a group or a run, of which nobody else may hold the lock; directories go if nothing is left.

    Returns:
        The bytes that it took.

    Raises:
        UserError: a command works on it; nothing was removed.
        RunError: a file cannot be removed.
    """
    group = group_of(removal.folder)
    is_member = is_group(group) and not is_group(removal.folder)
    with removal.held():
        if is_member:
            leave_group(group / removal.folder.name)
        for file in removal.files:
            try:
                file.path.unlink(missing_ok=True)
            except OSError as error:
                what = f"cannot remove {file.path}: {error.strerror}"
                raise RunError(what, where=str(file.path)) from error
        for run in removal.runs:
            for place in filter(None, _OWN):
                _remove_empty(run / place)
            _remove_empty(run, lock=True)
        _remove_empty(removal.folder, lock=True)
        if is_member:
            _end_group(group)
    above = removal.folder
    while above != removal.within:
        above = above.parent
        _remove_empty(above)
    return removal.size_bytes


def _remove_empty(folder: Path, *, lock: bool = False) -> None:
    """Removes a directory with nothing in it, but perhaps a lock's file: this command's or nobody's."""
    with suppress(OSError, UserError):
        names = [entry.name for entry in _entries(folder)]
        if names == [LOCK] and (lock or not is_locked(folder)):
            (folder / LOCK).unlink()
        elif names:
            return
        if folder.resolve() != Path.cwd():
            folder.rmdir()


def _end_group(group: Path) -> None:
    """Removes a group of which the last run is gone."""
    with suppress(UserError):
        if not read_group(group)[1]:
            (group / GROUP).unlink()
            _remove_empty(group, lock=True)
