"""Whether a run's files are those that were written."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

from edgefl.core.errors import RunError
from edgefl.core.files import atomically, sha256_of
from edgefl.store.digests import damaged_tables
from edgefl.store.folders import DATABASE
from edgefl.store.schema import SCHEMA, schema_of

# As `sha256sum -c` reads it.
STAMP = "SHA256SUMS"
# Where the definitions of tables and views, or what ties tables together, are damaged.
STRUCTURE = ""
# A reader may hold the database back when a run ends; it is not waited for.
_WAIT_MS = 200


def settle(database: sqlite3.Connection, folder: Path) -> None:
    """Leaves one database file that needs no log, and its SHA-256; a run that ended is whole without."""
    with suppress(OSError, RunError, sqlite3.OperationalError):
        database.execute(f"PRAGMA busy_timeout={_WAIT_MS}")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (mode,) = database.execute("PRAGMA journal_mode=DELETE").fetchone()
        if mode == "delete":
            stamp(folder)


def is_settled(folder: Path) -> bool:
    """Whether a run has ended, and nobody read it then."""
    return (folder / STAMP).exists()


def stamp(folder: Path) -> None:
    """Notes the SHA-256 of the database of a run that ended, so that it need not be read row by row.

    Raises:
        OSError: the database cannot be read.
        RunError: the note cannot be written.
    """
    atomically(folder / STAMP, f"{sha256_of(folder / DATABASE)}  {DATABASE}\n".encode())


def unstamp(folder: Path) -> None:
    """Takes the note away, before the database changes."""
    (folder / STAMP).unlink(missing_ok=True)


def is_stamped(folder: Path) -> bool:
    """Whether the database is, to the bit, as it was when the run ended."""
    try:
        noted = (folder / STAMP).read_bytes().split()
        return noted[:1] == [sha256_of(folder / DATABASE).encode()]
    except OSError:
        return False


def damage_of(database: sqlite3.Connection) -> dict[str, str]:
    """What is damaged in a database, by table; ``STRUCTURE`` for what belongs to none.

    Raises:
        sqlite3.DatabaseError: it cannot be read at all.
    """
    found = damaged_tables(database)
    if schema_of(database) != SCHEMA:
        found[STRUCTURE] = "its tables or views are not those that were made"
        return found
    problems = [row[0] for row in database.execute("PRAGMA integrity_check(1)")]
    if problems != ["ok"]:
        found[STRUCTURE] = problems[0].splitlines()[-1]
    return found
