"""The SHA-256 of a run's files: those that rows refer to, and of a run that ended all of them."""

import sqlite3
from contextlib import suppress
from pathlib import Path

from edgefl.core.errors import RunError
from edgefl.core.files import atomically, sha256_of
from edgefl.store.folders import DATABASE, FILES, HOST, PLAN

# As `sha256sum -c` reads it.
STAMP = "SHA256SUMS"
# A reader may hold the database back when a run ends; it is not waited for.
_WAIT_MS = 200


def filed(database: sqlite3.Connection) -> dict[str, str]:
    """By file, the SHA-256 of each that a row refers to."""
    tables = " UNION ALL ".join(f"SELECT file, sha256 FROM {table}" for table in FILES)  # noqa: S608 - our own names
    return dict(database.execute(tables).fetchall())


def settle(database: sqlite3.Connection, folder: Path) -> None:
    """Leaves one database file that needs no log, and the SHA-256 of all files; a run is whole without."""
    with suppress(OSError, RunError, sqlite3.OperationalError):
        database.execute(f"PRAGMA busy_timeout={_WAIT_MS}")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (mode,) = database.execute("PRAGMA journal_mode=DELETE").fetchone()
        if mode == "delete":
            others = (name for name in (DATABASE, PLAN, HOST) if (folder / name).is_file())
            sums = filed(database) | {name: sha256_of(folder / name) for name in others}
            atomically({folder / STAMP: "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)).encode()})


def is_settled(folder: Path) -> bool:
    """Whether a run is closed, and nobody read it then."""
    return (folder / STAMP).exists()


def noted(folder: Path) -> dict[str, str]:
    """By file, the SHA-256 that it had when the run was closed; empty while it is open.

    Raises:
        OSError: the note cannot be read.
    """
    if not is_settled(folder):
        return {}
    lines = (folder / STAMP).read_text(encoding="utf-8", errors="replace").split("\n")
    pairs = (line.partition("  ") for line in lines)
    # A note that is damaged vouches for nothing.
    return {DATABASE: "", **{name: sha256 for sha256, _, name in pairs if name}}


def content_damage(path: Path, sha256: str | None) -> str:
    """What is wrong with a file, given the SHA-256 of its content; empty if nothing is."""
    try:
        if sha256_of(path) == sha256:
            return ""
    except OSError as error:
        return f"{path.name} cannot be read: {error.strerror}"
    return f"{path.name} is damaged: its content is not what was written"
