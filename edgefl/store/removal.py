"""Removes runs and groups: what edgefl wrote, nothing else, and nothing that a command works on."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from edgefl.core.errors import RunError, UserError
from edgefl.store.folders import DATABASE, FILES, made_in, runs_in
from edgefl.store.groups import is_group, leave_group
from edgefl.store.locks import LOCK, group_of, locked, locked_run

# By folder in a run's directory: what the names of edgefl's files there match.
_OWN = {
    "": r"(host\.json|SHA256SUMS|traceback\.txt|plan\.yaml|report\.html)"
    r"|run\.sqlite(\.tmp)?(-wal|-shm|-journal)?",
    **dict.fromkeys(FILES, r"\d+\.safetensors"),
    "export": r"(global|client-\d+)(-\w+)?\.(onnx|md|bench\.json)",
    "tensorboard": r"events\.out\.tfevents\..*",
}
_OF_GROUP = {"": r"group\.json|report\.html"}
_TEMPORARY = r"\.\d+-\d+\.tmp"
_WAIT = "nothing of it was removed; wait until it has ended"


@dataclass(frozen=True)
class Removal:
    """A group, or a run, that can be removed.

    Attributes:
        folder: its directory.
        within: the directory that was named, which is ``folder`` or holds it.
        runs: the directories of its runs; of a run its own.
        files: what edgefl wrote there, in the order in which it goes.
        kept: all else that is there; a folder of which nothing is edgefl's stands for what is in it.
        size_bytes: of the files.
    """

    folder: Path
    within: Path
    runs: tuple[Path, ...]
    files: tuple[Path, ...]
    kept: tuple[Path, ...]
    size_bytes: int

    @classmethod
    def of(cls, folder: Path, within: Path, runs: Sequence[Path]) -> Removal:
        """Looks at a group or a run.

        Raises:
            UserError: a directory cannot be read.
        """
        found = [contents(run) for run in runs]
        if is_group(folder):
            found.append(contents(folder, _OF_GROUP, except_for=[run.name for run in runs]))
        files = {path: size for own, _ in found for path, size in own.items()}
        kept = tuple(path for _, others in found for path in others)
        return cls(folder, within, tuple(runs), tuple(files), kept, sum(files.values()))

    @property
    def group(self) -> Path | None:
        """The group that it is, or of which it is a run."""
        return next(filter(is_group, (self.folder, group_of(self.folder))), None)

    def held(self) -> AbstractContextManager[None]:
        """Locks it: a group with its runs; a run that has a group with that, whose list it leaves.

        Raises:
            UserError: a command works on it.
        """
        return locked(self.group, hint=_WAIT) if self.group else locked_run(self.folder, hint=_WAIT)


def contents(
    folder: Path, own: Mapping[str, str] = _OWN, except_for: Collection[str] = ()
) -> tuple[dict[Path, int], list[Path]]:
    """What is in a run's directory: the files that edgefl wrote, and all else. No link is followed.

    Args:
        folder: the directory.
        own: by folder in it, what the names of edgefl's files match.
        except_for: folders in it to leave out.

    Returns:
        The sizes of edgefl's files, those of the database last: what it is in is a run until then.

    Raises:
        UserError: the directory cannot be read.
    """
    files: dict[Path, int] = {}
    kept: list[Path] = []
    places = {place: folder / place for place in own}
    places = {place: path for place, path in places.items() if path.is_dir() and not path.is_symlink()}
    for place, path in places.items():
        name = re.compile(f"({own[place]})({_TEMPORARY})?")
        try:
            entries = sorted(os.scandir(path), key=lambda entry: entry.name)
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}", where=str(path)) from error
        for entry in entries:
            if not place and entry.name in {LOCK, *places, *except_for}:
                continue
            if not name.fullmatch(entry.name) or not entry.is_file(follow_symlinks=False):
                kept.append(Path(entry.path))
                continue
            files[Path(entry.path)] = 0
            # A command that works on it may just have replaced the file.
            with suppress(OSError):
                files[Path(entry.path)] = entry.stat(follow_symlinks=False).st_size
    return dict(sorted(files.items(), key=lambda file: file[0].name.startswith(DATABASE))), kept


def removals(paths: Sequence[Path]) -> list[Removal]:
    """What is to be removed where runs, groups and folders of groups are given, each once.

    Raises:
        UserError: a path is none of these, or a link, or holds the current directory or the home.
    """
    for path in paths:
        _check(path)
    found: dict[Path, Removal] = {}
    for path in paths:
        for folder, runs in _units(path).items():
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


def remove(removal: Removal) -> int:
    """Removes a group or a run, of which nobody else may hold the lock; directories go if nothing is left.

    Returns:
        The bytes that it took.

    Raises:
        UserError: a command works on it; nothing was removed.
        RunError: a file cannot be removed.
    """
    group = removal.group
    with removal.held():
        if group not in {None, removal.folder}:
            leave_group(removal.folder)
        for file in removal.files:
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                raise RunError(f"cannot remove {file}: {error.strerror}", where=str(file)) from error
    inner = [run / place for run in removal.runs for place in reversed(_OWN)]
    around = (removal.folder, *removal.folder.parents)
    outer = [folder for folder in around if folder.is_relative_to(removal.within)]
    for folder in (*inner, *outer, *([group] if group else [])):
        _remove_empty(folder)
    return removal.size_bytes


def _remove_empty(folder: Path) -> None:
    """Removes a directory with nothing in it, but perhaps a lock's file that a killed command left."""
    with suppress(OSError, UserError):
        if not folder.is_symlink() and [path.name for path in folder.iterdir()] == [LOCK]:
            with locked(folder):
                pass
        if folder.resolve() != Path.cwd():
            folder.rmdir()
