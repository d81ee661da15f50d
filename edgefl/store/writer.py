"""Writes a run's directory; see ``edgefl.store``."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.core.errors import RunError
from edgefl.core.event import ServerEvent
from edgefl.core.files import atomically
from edgefl.core.plan import Ints, Plan
from edgefl.core.yamls import dump
from edgefl.store.checks import settle, unstamp
from edgefl.store.digests import SCALARS, Digests, in_chunks
from edgefl.store.folders import DATABASE, PLAN, fresh_folder
from edgefl.store.reader import Reader, read
from edgefl.store.rows import INSERT_JOB, SavedState, count_rows, job_columns, plan_rows, state_row
from edgefl.store.schema import FORMAT, SCHEMA_SQL, STORED

# The database until the first commit, and the folders of files.
_UNNAMED, _FOLDERS = f"{DATABASE}.tmp", ("versions", "states")
# Held free for the end of the run: status and reason must be written where a disk became full.
_RESERVE, _RESERVE_BYTES = "reserve.tmp", 64 * 1024


class Store:
    """One run's directory, open for writing; ``read`` opens it for reading.

    The first commit makes the directory a run: until then its database has another name. Once a row could
    not be written, none is written any more but the run's end, so that what is there is a whole commit.
    """

    def __init__(
        self,
        folder: Path | None,
        write: Callable[[Path, Any], str],
        database: sqlite3.Connection,
        unnamed: Path | None = None,
    ) -> None:
        """Use ``create``, ``open`` or ``in_memory``.

        Args:
            folder: the directory; None in memory.
            write: writes a tree of tensors to a path, atomically, and returns the file's SHA-256.
            database: ``run.sqlite``.
            unnamed: the database's file until the first commit; None if it has its name.
        """
        self._folder = folder
        self._write = write
        self._db = database
        self._digests = Digests.load(database)
        self._unnamed = unnamed
        self._broken: RunError | None = None

    @property
    def folder(self) -> Path:
        """The directory.

        Raises:
            ValueError: the store is in memory.
        """
        if self._folder is None:
            raise ValueError("a store in memory has no directory and saves no versions")
        return self._folder

    @classmethod
    def create(cls, folder: Path, write: Callable[[Path, Any], str]) -> Store:
        """Makes a new run directory.

        Raises:
            UserError: it exists and is not empty, or cannot be made.
            RunError: it cannot be written.
        """
        fresh_folder(folder)
        file = folder / _UNNAMED
        try:
            for name in _FOLDERS:
                (folder / name).mkdir()
            (folder / _RESERVE).write_bytes(os.urandom(_RESERVE_BYTES))
            # SQLite's own files may never be written by a group.
            file.touch()
            database = sqlite3.connect(file)
            # Nobody reads the file yet, and it is of no use half-made.
            database.execute("PRAGMA journal_mode=MEMORY")
            return cls._new(folder, write, database, file)
        except (OSError, RunError, sqlite3.OperationalError) as error:
            _clear(folder)
            raise _cannot_write(folder, error) from error

    @classmethod
    def in_memory(cls) -> Store:
        """Makes a store without a directory, of rows alone; they are gone when it is closed."""
        return cls._new(None, _nowhere, sqlite3.connect(":memory:"))

    @classmethod
    def _new(
        cls,
        folder: Path | None,
        write: Callable[[Path, Any], str],
        database: sqlite3.Connection,
        unnamed: Path | None = None,
    ) -> Store:
        """Makes the tables."""
        # Everything up to the first commit is one transaction.
        database.executescript(f"BEGIN; {SCHEMA_SQL}")
        store = cls(folder, write, database, unnamed)
        store.set_meta({"format": FORMAT, "status": "running"})
        return store

    def reader(self) -> Reader:
        """Reads what was added so far, also what is not committed; ends with the store."""
        self._digests.save(self._db)
        return Reader(self._folder, self._db)

    @classmethod
    def open(cls, folder: Path, write: Callable[[Path, Any], str]) -> Store:
        """Opens a run directory to continue it; its status becomes "running".

        Raises:
            UserError: it is not a run directory, of another format, or damaged.
            RunError: it cannot be written.
        """
        with read(folder):
            pass
        try:
            unstamp(folder)
            (folder / _RESERVE).write_bytes(os.urandom(_RESERVE_BYTES))
            database = sqlite3.connect(folder / DATABASE)
            _log_ahead(database)
            store = cls(folder, write, database)
        except (OSError, sqlite3.OperationalError) as error:
            raise _cannot_write(folder, error) from error
        store.set_meta({"status": "running"})
        store.commit()
        return store

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """What fails to be written ends the run; rows since the last commit are dropped.

        Raises:
            RunError: a row cannot be written, now or before.
        """
        if self._broken is not None:
            raise self._broken
        try:
            yield
        except (OSError, sqlite3.OperationalError) as error:
            raise self._given_up(_cannot_write(self._folder, error)) from error

    def _given_up(self, error: RunError) -> RunError:
        """The error, after which no row is written any more."""
        self._broken = error
        with suppress(sqlite3.Error):
            self._db.rollback()
        return error

    def set_meta(self, values: Mapping[str, Any]) -> None:
        """Sets facts about the whole run, as JSON values.

        Raises:
            RunError: they cannot be written; so do all methods that add something.
        """
        with self._writing():
            self._set_meta(values)

    def _set_meta(self, values: Mapping[str, Any]) -> None:
        rows = [(key, json.dumps(value)) for key, value in values.items()]
        self._replace("meta", "key", rows)

    def _replace(self, table: str, key: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Puts rows in the place of those with the same first column, its key."""
        old = (
            self._db.execute(f"SELECT * FROM {table} WHERE {key} = ?", row[:1]).fetchone()  # noqa: S608 - our own names
            for row in rows
        )
        if gone := [tuple(row) for row in old if row is not None]:
            self._digests.add(table, list(zip(*gone, strict=True)), sign=-1)
        marks = ", ".join("?" * len(STORED[table]))
        self._db.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)  # noqa: S608 - our own names
        if rows:
            self._digests.add(table, list(zip(*rows, strict=True)))

    def write_plan(
        self,
        plan: Plan,
        resolved: Mapping[str, Any],
        test_samples: Iterable[int],
        class_counts: Ints | None = None,
    ) -> None:
        """Writes what is known before the run starts: ``plan.yaml``, clients, refusals and prices.

        Args:
            plan: the plan.
            resolved: what goes into ``plan.yaml``.
            test_samples: each client's number of personal test samples.
            class_counts: its training samples of each class, (clients, classes); None to leave them out.
        """
        if self._folder is not None:
            content = dump(resolved).encode()
            try:
                atomically(self._folder / PLAN, content)
            except RunError as error:
                raise self._given_up(error) from error
            self.set_meta({"plan_sha256": hashlib.sha256(content).hexdigest()})
        for table, rows in plan_rows(plan, test_samples):
            self._insert(table, rows)
        if class_counts is not None:
            self._insert("class_counts", count_rows(class_counts))
        self.commit()

    def add_events(self, events: Iterable[ServerEvent]) -> None:
        """Adds the server's own events, which belong to no job; the next commit makes them durable."""
        self._insert("server_events", ((*event[:2], str(event.kind), *event[3:]) for event in events))

    def add_jobs(self, rows: np.ndarray, exchanges: Sequence[str]) -> None:
        """Adds ended jobs; the next commit makes them durable.

        Args:
            rows: of ``edgefl.core.event.JOB``.
            exchanges: the names that the rows' numbers stand for.
        """
        with self._writing():
            hashed, inserted = job_columns(rows, exchanges)
            self._digests.add("jobs", hashed)
            self._db.executemany(INSERT_JOB, zip(*inserted, repeat(None), strict=False))

    def add_tails(self, rows: np.ndarray) -> None:
        """Adds the tails that were settled when the run ended, rows of ``edgefl.core.event.TAIL``."""
        self._insert("settled_tails", rows.tolist())

    def add_scalars(self, scalars: Mapping[int, Mapping[str, float]]) -> None:
        """Adds training's scalars to the rows of jobs, by job, once for each."""
        rows = [(json.dumps(dict(values)), job) for job, values in scalars.items()]
        if not rows:
            return
        with self._writing():
            update = "UPDATE jobs SET scalars = ? WHERE job = ? AND scalars IS NULL"
            if self._db.executemany(update, rows).rowcount != len(rows):
                raise AssertionError("scalars of a job that has not ended, or has some")
            self._digests.add(SCALARS, [list(scalars), [text for text, _ in rows]])

    def add(self, table: str, *rows: Mapping[str, Any]) -> None:
        """Adds rows; the next commit makes them durable. A column that a row lacks is NULL."""
        names = STORED[table]
        if unknown := {name for row in rows for name in row if name not in names}:
            raise AssertionError(f"table {table} has no column {', '.join(unknown)}")
        self._insert(table, (tuple(row.get(name) for name in names) for row in rows))

    def add_client_scores(self, version: int, scores: Iterable[tuple[int, float, int]]) -> None:
        """Adds each client's (client, accuracy, samples) under a version."""
        self._insert("client_evaluations", ((version, *row) for row in scores))

    def _insert(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        marks = ", ".join("?" * len(STORED[table]))
        with self._writing():
            for chunk in in_chunks(rows):
                self._digests.add(table, list(zip(*chunk, strict=True)))
                self._db.executemany(f"INSERT INTO {table} VALUES ({marks})", chunk)  # noqa: S608 - our own names

    def checkpoint(self, version: int, server: Any, states: Mapping[int, SavedState], *, best: bool) -> None:
        """Saves a version, refers to the changed client states, and commits everything so far.

        Args:
            version: the server version.
            server: its state.
            states: by client, those that changed since the last checkpoint; their files are written.
            best: whether this is the best version so far.

        Raises:
            RunError: something cannot be written; what was saved before stays as it was.
        """
        name = f"versions/{version:06d}.safetensors"
        # The file before its row: a failure leaves no row that close() would commit.
        sha256 = self._write(self.folder / name, server)
        with self._writing():
            before = self._versions()
            if best:
                self._db.execute("UPDATE versions SET best = 0")
            self._db.execute("UPDATE versions SET last = 0")
            self._db.execute(
                "INSERT INTO versions VALUES (?, ?, ?, 1, ?) ON CONFLICT (version) "
                "DO UPDATE SET last = 1, best = MAX(best, excluded.best), sha256 = excluded.sha256",
                (version, name, sha256, int(best)),
            )
            self._db.execute("DELETE FROM versions WHERE last = 0 AND best = 0")
            if before:
                self._digests.add("versions", list(zip(*before, strict=True)), sign=-1)
            self._digests.add("versions", list(zip(*self._versions(), strict=True)))
            self._replace("states", "client", [state_row(*item) for item in states.items()])
        self.commit()
        self._sweep()

    def _versions(self) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._db.execute("SELECT * FROM versions")]

    def _sweep(self) -> None:
        """Deletes the files that no row refers to."""
        kept = {
            name for (name,) in self._db.execute("SELECT file FROM versions UNION SELECT file FROM states")
        }
        for folder in _FOLDERS:
            with suppress(OSError):
                for path in (self.folder / folder).iterdir():
                    if f"{folder}/{path.name}" not in kept:
                        path.unlink()

    def commit(self) -> None:
        """Makes everything added so far durable; the first one makes the directory a run."""
        with self._writing():
            self._commit()

    def _commit(self) -> None:
        self._digests.save(self._db)
        self._db.commit()
        if self._unnamed is not None and self._folder is not None:
            self._db.close()
            self._unnamed.replace(self._folder / DATABASE)
            self._unnamed, self._db = None, sqlite3.connect(self._folder / DATABASE)
            _log_ahead(self._db)

    @property
    def begun(self) -> bool:
        """Whether the directory is a run: the first commit was made."""
        return self._unnamed is None

    def abandon(self) -> None:
        """Closes the database; what was committed stays, and a run that has not begun leaves none."""
        self._db.close()
        if self._folder is not None and not self.begun:
            _clear(self._folder)

    def close(self, status: str, **facts: Any) -> None:
        """Ends the run: "done", "failed" or "interrupted", with facts such as the reason.

        Raises:
            RunError: this could not be written; what was committed stays, as of a run that was killed.
        """
        try:
            self._make_room()
            try:
                self._end(status, facts)
            except sqlite3.OperationalError as error:
                self._given_up(_cannot_write(self._folder, error))
                # Where files may not grow, the log of changes begins anew once they are in the database.
                with suppress(sqlite3.Error):
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._end(status, facts)
            if self._folder is not None:
                settle(self._db, self._folder)
        except (OSError, sqlite3.OperationalError) as error:
            raise _cannot_write(self._folder, error) from error
        finally:
            self._db.close()

    def _make_room(self) -> None:
        """Frees what was held free; a run that could not even begin leaves no database.

        Raises:
            RunError: the run could not begin.
        """
        if self._folder is None:
            return
        with suppress(OSError):
            (self._folder / _RESERVE).unlink()
        if self._unnamed is not None and self._broken is not None:
            self.abandon()
            raise self._broken

    def _end(self, status: str, facts: Mapping[str, Any]) -> None:
        """Commits the end of the run, with what was added since the last commit if all of it was written."""
        if self._broken is not None:
            self._db.rollback()
            self._digests = Digests.load(self._db)
        self._set_meta({"status": status, **facts})
        self._commit()


def _clear(folder: Path) -> None:
    """Removes what a run that never began made in its directory."""
    for name in (_UNNAMED, _RESERVE, PLAN):
        with suppress(OSError):
            (folder / name).unlink()
    for name in _FOLDERS:
        with suppress(OSError):
            (folder / name).rmdir()


def _log_ahead(database: sqlite3.Connection) -> None:
    """Lets others read while rows are written."""
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=NORMAL")


def _cannot_write(folder: Path | None, error: Exception) -> RunError:
    if isinstance(error, RunError):
        return error
    reason = getattr(error, "strerror", None) or error
    return RunError(f"cannot write {folder}: {reason}", where=str(folder or ""))


def _nowhere(path: Path, _: Any) -> str:
    """A store in memory has no files."""
    raise AssertionError(f"a store in memory saves no {path.name}")
