"""Runs that are changed on disk: as damage changes them, or as if they had been written so."""

from __future__ import annotations

import resource
import sqlite3
from contextlib import closing, contextmanager

from edgefl.store.checks import unstamp
from edgefl.store.digests import _COLUMNS, Digests, stored_rows


def rewritten(folder, *statements):
    """Changes rows of a run, with the digests that its store would have written."""
    unstamp(folder)
    with closing(sqlite3.connect(folder / "run.sqlite")) as database:
        for statement in statements:
            database.execute(statement)
        digests = Digests()
        database.execute("DELETE FROM digests")
        for table in _COLUMNS:
            for columns in stored_rows(database, table):
                digests.add(table, columns)
        digests.save(database)
        database.commit()


def flipped(content, bit):
    """The bytes with one bit changed."""
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def zeroed(content, start, length):
    """The bytes with a range set to zero."""
    return content[:start] + bytes(len(content[start : start + length])) + content[start + length :]


@contextmanager
def files_of_at_most(size):
    """No file of this process can grow beyond it, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
