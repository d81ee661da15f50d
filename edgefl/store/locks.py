"""Locks of folders by the operating system: those of a process end with it, however it ends.

A lock is one of ``filelock`` on the file ``.edgefl.lock`` in the folder. The file alone says nothing: one
that a killed command left behind is taken over.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout, lock_descriptor

from edgefl.core.errors import UserError

# In a folder that is locked, and in that of a group of runs.
LOCK, GROUP = ".edgefl.lock", "group.json"
WAIT = "wait until it has ended"
# Looking at a lock takes it for a moment.
_TRIES, _PAUSE_S = 4, 0.01


@contextmanager
def locked(folder: Path, *, hint: str = WAIT) -> Iterator[None]:
    """Locks a folder, which exists, for this command alone; of a group's, none of its runs may be locked.

    Args:
        folder: the folder.
        hint: what to do where another command has it.

    Raises:
        UserError: another command has it, or the lock's file cannot be written.
    """
    lock = FileLock(folder / LOCK, timeout=_TRIES * _PAUSE_S, poll_interval=_PAUSE_S)
    try:
        lock.acquire()
    except Timeout:
        raise _in_use(folder, hint) from None
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}", where=str(folder)) from error
    try:
        if (folder / GROUP).exists() and any(is_locked(path.parent) for path in folder.glob(f"*/{LOCK}")):
            raise _in_use(folder, hint)
        yield
    finally:
        # Not in a process that was forked meanwhile. Who waits for a file that is gone makes another one.
        if lock.is_locked:
            with suppress(OSError):
                (folder / LOCK).unlink()
            lock.release()


def _in_use(folder: Path, hint: str) -> UserError:
    return UserError(f"another command writes into {folder}", where=str(folder), hint=hint)


def group_of(run: Path) -> Path:
    """The directory around a run's, which may be a group's; as short as the run's was given."""
    return run.resolve().parent if run.parent == Path() else run.parent


@contextmanager
def locked_run(folder: Path, *, hint: str = WAIT) -> Iterator[None]:
    """Locks a run for this command alone; no command may have its group.

    A command on a whole group locks that, then looks at its runs; one of the two is always refused.

    Raises:
        UserError: as ``locked``.
    """
    group = group_of(folder)
    with locked(folder, hint=hint):
        if is_locked(group):
            raise _in_use(group, hint)
        yield


def is_locked(folder: Path) -> bool:
    """Whether a command has a folder for itself; it need not be writable."""
    try:
        file = os.open(folder / LOCK, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        with suppress(OSError):
            for _ in range(_TRIES):
                if lock_descriptor(file, blocking=False):
                    return False
                time.sleep(_PAUSE_S)
        return True
    finally:
        os.close(file)
