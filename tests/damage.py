"""Runs that are changed on disk: as damage changes them, or as if they had been written so."""

from __future__ import annotations

import json
import resource
import sqlite3
from contextlib import closing, contextmanager

from edgefl.store.events import DIGEST, EventDigest
from edgefl.store.sums import unsettle


def rewritten(folder, *statements):
    """Changes rows of a run, as if its store had written them so."""
    unsettle(folder)
    with closing(sqlite3.connect(folder / "run.sqlite")) as database, database:
        for statement in statements:
            database.execute(statement)
        sums = json.dumps(EventDigest.of(database).sums)
        database.execute("UPDATE meta SET value = ? WHERE key = ?", (sums, DIGEST))


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
