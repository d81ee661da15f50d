"""Locks of folders by the operating system: those of a process end with it, however it ends.

A lock is one of ``filelock`` on the file ``.edgefl.lock`` in the folder. The file alone says nothing: one
that a killed command left behind is taken over. The runs of a group have one lock, the group's.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout, lock_descriptor

from edgefl.core.errors import UserError

# In a folder that is locked, and in that of a group of runs.
LOCK, GROUP = ".edgefl.lock", "group.json"
# Looking at a lock takes it for a moment.
_TRIES, _PAUSE_S = 4, 0.01
# Windows does not know it.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def locked(folder: Path, *, hint: str = "wait until it has ended") -> Iterator[None]:
    """Locks a group, or a run with its group, for this command alone; a ``UserError`` where it cannot."""
    place = _locked_with(folder)
    lock = FileLock(place / LOCK, timeout=_TRIES * _PAUSE_S, poll_interval=_PAUSE_S)
    try:
        lock.acquire()
    except Timeout:
        what = f"another command writes into {place}"
        raise UserError(what, where=str(place), hint=hint) from None
    except OSError as error:
        raise UserError(f"cannot write to {place}: {error.strerror}", where=str(place)) from error
    try:
        yield
    finally:
        # Not in a process that was forked meanwhile. Who waits for a file that is gone makes another one.
        if lock.is_locked:
            with suppress(OSError):
                (place / LOCK).unlink()
            lock.release()


def _locked_with(folder: Path) -> Path:
    """The folder whose lock is that of another: of a run in a group, also one being planned, the group's."""
    around = folder.resolve().parent if folder.parent == Path() else folder.parent
    return around if (around / GROUP).exists() or _is_held(around) else folder


def is_locked(folder: Path) -> bool:
    """Whether a command has a folder for itself; it need not be writable."""
    return _is_held(_locked_with(folder))


def works_on(run: Path) -> None:
    """Notes in the lock of a run's group that the command is at this run, and at no other one."""
    # Without a lock there is no such file.
    with suppress(OSError):
        file = os.open(_locked_with(run) / LOCK, os.O_WRONLY | os.O_TRUNC | _NO_LINK)
        with open(file, "w", encoding="utf-8") as opened:  # noqa: PTH123 - a descriptor
            opened.write(run.resolve().name)


def is_worked_on(run: Path) -> bool:
    """Whether a command has a run for itself, and is not at another one of its group."""
    place, at = _locked_with(run), ""
    with suppress(OSError):
        at = (place / LOCK).read_text(encoding="utf-8")
    return at in {"", run.resolve().name} and _is_held(place)


def _is_held(place: Path) -> bool:
    try:
        file = os.open(place / LOCK, os.O_RDONLY | _NO_LINK)
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
