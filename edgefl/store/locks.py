"""Locks of folders by the operating system: those of a process end with it, however it ends.

A lock is ``flock`` on the file ``.edgefl.lock`` in the folder. The file alone says nothing: one that a killed
command left behind is taken over. Where the operating system or the file system has no such locks, a note
says so and nothing is refused.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from edgefl.core.errors import UserError
from edgefl.core.notes import note

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None  # type: ignore[assignment]

# In a folder that is locked, and in that of a group of runs.
LOCK, GROUP = ".edgefl.lock", "group.json"
WAIT = "wait until it has ended"
# Looking at a lock, and ending a shared one, take it for a moment.
_TRIES, _PAUSE_S = 4, 0.01
_UNKNOWN = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}

_held: set[int] = set()


def _forget() -> None:
    """In a forked process: the lock is its parent's, and must not outlive it."""
    while _held:
        os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@contextmanager
def locked(folder: Path, *, shared: bool = False, hint: str = WAIT) -> Iterator[None]:
    """Locks a folder, which exists: for this command alone, or against those that want it alone.

    Args:
        folder: the folder.
        shared: whether others may share it.
        hint: what to do where another command has it.

    Raises:
        UserError: another command has it, or the lock's file cannot be written.
    """
    lock = folder / LOCK
    try:
        file = _taken(lock, shared=shared)
    except BlockingIOError:
        raise UserError(f"another command writes into {folder}", where=str(folder), hint=hint) from None
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}", where=str(folder)) from error
    _held.add(file)
    try:
        yield
    finally:
        # Not in a process that was forked meanwhile.
        if file in _held:
            _held.remove(file)
            _released(lock, file)


def group_of(run: Path) -> Path:
    """The directory around a run's, which may be a group's; as short as the run's was given."""
    return run.resolve().parent if run.parent == Path() else run.parent


@contextmanager
def locked_run(folder: Path, *, hint: str = WAIT) -> Iterator[None]:
    """Locks a run for this command alone, and its group, if it has one, against commands on the whole group.

    Raises:
        UserError: as ``locked``.
    """
    group = group_of(folder)
    if (group / GROUP).exists() or (group / LOCK).exists():
        with locked(group, shared=True, hint=hint), locked(folder, hint=hint):
            yield
    else:
        with locked(folder, hint=hint):
            yield


def is_locked(folder: Path) -> bool:
    """Whether a command has a folder for itself; it need not be writable.

    Where there are no locks, the file of one is taken for it.
    """
    try:
        file = os.open(folder / LOCK, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return not _flock(file, shared=True)
    except OSError:
        return True
    finally:
        os.close(file)


def _taken(lock: Path, *, shared: bool) -> int:
    """The open file of a lock that is now ours.

    Raises:
        BlockingIOError: another has it.
        OSError: its file cannot be written.
    """
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE_S)
        # NFS locks for one alone only what is open for writing.
        file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            if _flock(file, shared=shared) and _is_at(lock, file):
                return file
        except OSError as error:
            if error.errno in _UNKNOWN:
                note(f"{lock.parent} cannot be locked: let no other command write into it meanwhile")
                return file
            os.close(file)
            raise
        os.close(file)
    raise BlockingIOError


def _released(lock: Path, file: int) -> None:
    """Gives a lock back; the last one to do so removes its file."""
    try:
        # While it is ours alone, nobody else puts another file in its place.
        if _flock(file, shared=False) and _is_at(lock, file):
            lock.unlink()
    except OSError:
        # Unknown locks keep nobody from removing it.
        with suppress(OSError):
            lock.unlink()
    finally:
        os.close(file)


def _flock(file: int, *, shared: bool) -> bool:
    """Whether an open file is now locked; False if another has it.

    Raises:
        OSError: there are no locks here.
    """
    if fcntl is None:
        raise OSError(errno.ENOSYS, "no locks")
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(path: Path, file: int) -> bool:
    """Whether an open file is the one of that name: its last owner may have removed it meanwhile."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(file))
    except FileNotFoundError:
        return False
