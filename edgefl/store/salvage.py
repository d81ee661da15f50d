"""What is whole of a damaged database."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from edgefl.store.digests import SCALARS, Digests, in_chunks
from edgefl.store.schema import SCHEMA_SQL, STORED


def salvaged(database: sqlite3.Connection, damaged: Collection[str]) -> sqlite3.Connection:
    """A database in memory with the tables that are whole, and their digests; the damaged ones are empty.

    Args:
        database: a run's; it is closed.
        damaged: the names of the tables to leave out, ``SCALARS`` for the scalars of jobs.
    """
    copy = sqlite3.connect(":memory:")
    copy.executescript(SCHEMA_SQL)
    for table in STORED:
        if table in damaged or table == "digests":
            continue
        cursor = database.cursor()
        cursor.row_factory = None
        lost = {SCALARS} if table == "jobs" and SCALARS in damaged else set()
        names = ["NULL" if name in lost else name for name in STORED[table]]
        marks = ", ".join("?" * len(names))
        for rows in in_chunks(cursor.execute(f"SELECT {', '.join(names)} FROM {table}")):  # noqa: S608 - our own names
            copy.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608 - our own names
    kept = Digests.load(database)
    kept.changed = {*STORED, SCALARS}.difference(damaged)
    kept.save(copy)
    database.close()
    return copy
