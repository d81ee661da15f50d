"""The SHA-256 of a run's files: those that rows refer to, and of a run that ended all of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from edgefl.core.errors import RunError
from edgefl.core.files import atomically, sha256_of
from edgefl.store.folders import DATABASE, FILES, HOST, PLAN

# As `sha256sum -c` reads it.
STAMP = "SHA256SUMS"
# A reader may hold the database back when a run ends; it is not waited for.
_WAIT_MS = 200


def files_of(database: sqlite3.Connection) -> dict[str, str]:
    """By the names of the files that a database refers to, the SHA-256 that they were written with."""
    tables = " UNION ALL ".join(f"SELECT file, sha256 FROM {table}" for table in FILES)  # noqa: S608 - our own names
    found = {file: sha256 for file, sha256 in database.execute(tables)}  # noqa: C416 - rows are no pairs
    for (sha256,) in database.execute("SELECT value FROM meta WHERE key = 'plan_sha256'"):
        found[PLAN] = json.loads(sha256)
    return found


def settle(database: sqlite3.Connection, folder: Path) -> None:
    """Leaves one database file that needs no log, and the SHA-256 of all files; a run is whole without."""
    with suppress(OSError, RunError, sqlite3.OperationalError):
        database.execute(f"PRAGMA busy_timeout={_WAIT_MS}")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (mode,) = database.execute("PRAGMA journal_mode=DELETE").fetchone()
        if mode == "delete":
            stamp(database, folder)


def stamp(database: sqlite3.Connection, folder: Path) -> None:
    """Notes the SHA-256 of each file of a run that ended.

    Raises:
        OSError: the database cannot be read.
        RunError: the note cannot be written.
    """
    sums = files_of(database)
    sums |= {name: sha256_of(folder / name) for name in (DATABASE, HOST) if (folder / name).is_file()}
    atomically(folder / STAMP, _text(sums).encode())


def _text(sums: Mapping[str, str]) -> str:
    return "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(sums.items()))


def is_settled(folder: Path) -> bool:
    """Whether a run has ended, and nobody read it then."""
    return (folder / STAMP).exists()


def unsettle(folder: Path) -> None:
    """Takes the note away, before the database changes."""
    (folder / STAMP).unlink(missing_ok=True)


def noted(folder: Path) -> dict[str, str]:
    """By file, the SHA-256 that it had when the run ended; empty where it has not.

    Raises:
        OSError: the note cannot be read.
    """
    if not is_settled(folder):
        return {}
    pairs = (line.partition("  ") for line in _note(folder).split("\n"))
    # A note that is damaged vouches for nothing.
    return {DATABASE: "", **{name: sha256 for sha256, _, name in pairs if name}}


def _note(folder: Path) -> str:
    return (folder / STAMP).read_text(encoding="utf-8", errors="replace")


def damages(database: sqlite3.Connection, folder: Path) -> list[str]:
    """Reads all files of a run, and says which are damaged; its database is whole."""
    known = noted(folder)
    sums = files_of(database) | {name: known[name] for name in (DATABASE, HOST) if name in known}
    is_other = bool(known) and _note(folder) != _text(sums)
    found = [f"{STAMP} is damaged: its content is not what was written"] if is_other else []
    found += (content_damage(folder / name, sha256) for name, sha256 in sums.items())
    return [what for what in found if what]


def content_damage(path: Path, sha256: str | None) -> str:
    """What is wrong with a file, given the SHA-256 of its content; empty if nothing is."""
    try:
        if sha256_of(path) == sha256:
            return ""
    except OSError as error:
        return f"{path.name} cannot be read: {error.strerror}"
    return f"{path.name} is damaged: its content is not what was written"
