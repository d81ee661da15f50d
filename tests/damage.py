"""Runs that are changed on disk: as damage changes them, or as if they had been written so."""

import json
import resource
import sqlite3
from contextlib import closing, contextmanager

from edgefl.store.events import DIGEST, EventDigest
from edgefl.store.folders import DATABASE, FILES, HOST, PLAN, STAMP
from edgefl.store.reader import content_damage, noted, read


def rewritten(folder, *statements):
    """Changes rows of a run, as if its store had written them so."""
    (folder / STAMP).unlink(missing_ok=True)
    with closing(sqlite3.connect(folder / "run.sqlite")) as database, database:
        for statement in statements:
            database.execute(statement)
        sums = json.dumps(EventDigest.of(database).sums)
        database.execute("UPDATE meta SET value = ? WHERE key = ?", (sums, DIGEST))


def verify(folder):
    """Reads all files of a run, and says which are damaged."""
    with read(folder) as reader:
        rows = [row for table in FILES for row in reader.rows(table)]
    known = noted(folder)
    sums = {name: known[name] for name in (DATABASE, PLAN, HOST) if name in known}
    sums |= {row["file"]: row["sha256"] for row in rows}
    found = (content_damage(folder / name, sha256) for name, sha256 in sums.items())
    return [what for what in found if what]


def status_of(folder):
    """How a run stands, whatever its rows say."""
    with read(folder, trusted=True) as reader:
        return reader.status


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
