"""Reads a run's directory."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgefl.core.errors import UnknownNameError, UserError, nearest
from edgefl.core.units import RESOLVED
from edgefl.core.yamls import Document, text_of
from edgefl.store.schema import FORMAT, TABLES

DATABASE, PLAN = "run.sqlite", "plan.yaml"
# The commits that read older formats.
_READ_BY = {1: "9e3b046", 2: "51b76e9", 3: "8dc68d2"}

# A view has no order of its own.
_ORDER = {"clients": "client", "refusals": "client", "events": "seq"}


class Reader:
    """One run's directory, open for reading; or the rows of a store in memory.

    Attributes:
        where: the directory as text; empty in memory.
        meta: facts about the whole run.
    """

    def __init__(self, folder: Path | None, database: sqlite3.Connection | None = None) -> None:
        """Opens a run directory, or reads an open database.

        Args:
            folder: the directory; None in memory.
            database: the database; None for the directory's.

        Raises:
            UserError: it is not one, or of another format.
        """
        self._folder = folder
        self.where = "" if folder is None else str(folder)
        self._db = _database(self.folder) if database is None else database
        self._db.row_factory = sqlite3.Row
        try:
            self.meta = self._meta()
        except BaseException:
            self._db.close()
            raise

    @property
    def folder(self) -> Path:
        """The directory.

        Raises:
            ValueError: the rows are in memory.
        """
        if self._folder is None:
            raise ValueError("a run in memory has no directory")
        return self._folder

    def _meta(self) -> dict[str, Any]:
        try:
            meta = {row["key"]: json.loads(row["value"]) for row in self.query("SELECT key, value FROM meta")}
        except ValueError as error:
            raise _damaged(self.folder, error) from error
        if meta.get("format") != FORMAT:
            raise _other_format(self.folder, meta.get("format"))
        return meta

    def rows(self, table: str, order: str = "") -> list[dict[str, Any]]:
        """A table as a list of dicts, in the order it was written unless another is given.

        Raises:
            UnknownNameError: there is no such table.
            UserError: the file is damaged.
        """
        if table not in TABLES:
            raise UnknownNameError(f"unknown table {table!r}", where=self.where, hint=nearest(table, TABLES))
        return self.query(f"SELECT * FROM {table} ORDER BY {order or _ORDER.get(table, 'rowid')}")  # noqa: S608 - one of our own names

    def query(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """The rows of a SELECT, as a list of dicts.

        Raises:
            UserError: the file is damaged.
        """
        try:
            return [dict(row) for row in self._db.execute(sql, values)]
        except sqlite3.DatabaseError as error:
            raise _damaged(self.folder, error) from error

    def arrays(self, sql: str, **dtypes: type[np.generic]) -> dict[str, NDArray[Any]]:
        """The columns of a SELECT without NULLs, as arrays, for tables that are long.

        Args:
            sql: the SELECT.
            dtypes: each column's name and type, in order.

        Raises:
            UserError: the file is damaged.
        """
        cursor = self._db.cursor()
        cursor.row_factory = None
        try:
            found = np.fromiter(cursor.execute(sql), dtype=np.dtype(list(dtypes.items())))
        except sqlite3.DatabaseError as error:
            raise _damaged(self.folder, error) from error
        return {name: np.ascontiguousarray(found[name]) for name in dtypes}

    def document(self) -> Document:
        """``plan.yaml``.

        Raises:
            UserError: it is missing or damaged.
        """
        file = self.folder / PLAN
        # What edgefl wrote itself may be long: it holds the rows of traces.
        return replace(Document.parse(text_of(file), str(file), limited=False), context=RESOLVED)

    def resolved(self) -> dict[str, Any]:
        """``plan.yaml`` as plain data: the resolved scenario, its fleet and its devices."""
        return dict(self.document().data)

    def host(self) -> dict[str, Any]:
        """``host.json`` as plain data; empty if missing or damaged, since no result depends on it."""
        try:
            host = json.loads((self.folder / "host.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return host if isinstance(host, dict) else {}

    def close(self) -> None:
        """Closes the database."""
        self._db.close()


def _database(folder: Path) -> sqlite3.Connection:
    if not (folder / DATABASE).is_file():
        raise UserError(f"{folder} is not a run directory", where=str(folder), hint="it has no run.sqlite")
    try:
        return _opened(folder / DATABASE)
    except sqlite3.OperationalError as error:
        raise _damaged(folder, error) from error


def _opened(file: Path) -> sqlite3.Connection:
    """A run's database, for reading.

    In WAL mode SQLite creates files beside the database even for a reader. In a read-only folder nobody can
    be writing, so the file is opened as immutable.
    """
    if os.access(file.parent, os.W_OK) or file.with_name(f"{file.name}-wal").exists():
        return sqlite3.connect(file)
    return sqlite3.connect(f"{file.resolve().as_uri()}?immutable=1", uri=True)


def _other_format(folder: Path, number: Any) -> UserError:
    if not isinstance(number, int):
        return _damaged(folder, ValueError("it has no format number"))
    reads = f"edgefl as of git commit {_READ_BY[number]}" if number in _READ_BY else "a newer edgefl"
    return UserError(
        f"{folder.name} is a run of format {number}; this edgefl reads format {FORMAT}",
        where=str(folder),
        hint=f"read it with {reads}, or run its scenario again",
    )


def _damaged(folder: Path, error: Exception) -> UserError:
    return UserError(f"{folder.name}: run.sqlite cannot be read: {error}", where=str(folder))


@contextmanager
def read(folder: Path) -> Iterator[Reader]:
    """A reader that is closed at the end."""
    with closing(Reader(folder)) as reader:
        yield reader


def fresh_folder(folder: Path) -> None:
    """Makes a directory.

    Raises:
        UserError: it exists and is not empty, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UserError(
                f"{folder} is not empty", where=str(folder), hint="choose another --out; nothing was changed"
            )
    except OSError as error:
        raise UserError(f"cannot create {folder}: {error.strerror}", where=str(folder)) from error


def is_run(folder: Path) -> bool:
    """Whether a directory holds one run."""
    return (folder / DATABASE).is_file()


def runs_in(folder: Path) -> list[Path]:
    """The runs in a group, or in a folder of groups, in order; a run's directory is a group of one.

    Raises:
        UserError: there are none.
    """
    if is_run(folder):
        return [folder]
    runs = (
        sorted(
            (path.parent for level in ("*", "*/*") for path in folder.glob(f"{level}/run.sqlite")),
            key=lambda path: _by_number(path.relative_to(folder)),
        )
        if folder.is_dir()
        else []
    )
    if not runs:
        raise UserError(
            f"{folder} is neither a run nor a group of runs",
            where=str(folder),
            hint="give a directory that `edgefl run` made",
        )
    return runs


def _by_number(path: Path) -> list[tuple[int, str]]:
    """Sorts 100-x after 99-x."""
    return [(int(digits or 0), text) for digits, text in re.findall(r"(\d+)|(\D+)", str(path))]
