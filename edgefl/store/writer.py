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
from edgefl.core.files import atomically, on_disk
from edgefl.core.plan import Ints, Plan
from edgefl.core.yamls import dump
from edgefl.store.checkpoints import (
    Checkpoint,
    Place,
    Saved,
    SavedFile,
    add_checkpoint,
    delete,
    keep_one,
    rewind,
)
from edgefl.store.checks import settle, unstamp
from edgefl.store.digests import SCALARS, Digests, in_chunks
from edgefl.store.folders import DATABASE, FILES, PLAN, PLANNED, UNNAMED, begin, fresh_folder
from edgefl.store.reader import Reader, check_run
from edgefl.store.rows import INSERT_JOB, count_rows, event_row, job_columns, plan_rows
from edgefl.store.schema import FORMAT, SCHEMA_SQL, STORED

# Facts about how a run ended.
_OF_ENDS = ("rounds", "stopped", "virtual_s", "measures_host_s", "reason", "host_wall_s")
# The files of tables, by number.
_NAMES = {"versions": "{:06d}.safetensors", "outcomes": "{:08d}.safetensors"}
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
        *,
        planned: bool = False,
    ) -> None:
        """Use ``create``, ``open`` or ``in_memory``.

        Args:
            folder: the directory; None in memory.
            write: writes a tree of tensors to a path, atomically, and returns the file's SHA-256.
            database: ``run.sqlite``.
            unnamed: the database's file until the first commit; None if it has its name.
            planned: whether the run does not begin at the first commit.
        """
        self._folder = folder
        self._write = write
        self._db = database
        self._digests = Digests.load(database)
        self._unnamed = unnamed
        self._planned = planned
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
    def create(cls, folder: Path, write: Callable[[Path, Any], str], *, planned: bool = False) -> Store:
        """Makes a new run directory.

        Args:
            folder: the directory.
            write: as of ``__init__``.
            planned: whether the run does not begin at the first commit, but when it is opened.

        Raises:
            UserError: it exists and is not empty, or cannot be made.
            RunError: it cannot be written.
        """
        fresh_folder(folder)
        file = folder / UNNAMED
        try:
            for name in FILES:
                (folder / name).mkdir()
            if not planned:
                _hold_free(folder)
            # SQLite's own files may never be written by a group.
            file.touch()
            database = sqlite3.connect(file)
            # Nobody reads the file yet, and it is of no use half-made.
            database.execute("PRAGMA journal_mode=MEMORY")
            return cls._new(folder, write, database, file, planned=planned)
        except (OSError, RunError, sqlite3.OperationalError) as error:
            discard(folder)
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
        *,
        planned: bool = False,
    ) -> Store:
        """Makes the tables."""
        # Everything up to the first commit is one transaction.
        database.executescript(f"BEGIN; {SCHEMA_SQL}")
        store = cls(folder, write, database, unnamed, planned=planned)
        store.set_meta({"format": FORMAT, "status": "running"})
        return store

    def reader(self) -> Reader:
        """Reads what was added so far, also what is not committed; ends with the store."""
        self._digests.save(self._db)
        return Reader(self._folder, self._db)

    @classmethod
    def open(cls, folder: Path, write: Callable[[Path, Any], str]) -> Store:
        """Opens a run that was planned, or one that began and was found whole, to go on with it.

        Raises:
            UserError: it is not a run directory.
            RunError: it cannot be written.
        """
        try:
            begin(folder)
            check_run(folder)
            # Half-written ones of a process that was killed.
            for path in folder.glob("*.tmp"):
                path.unlink()
            _hold_free(folder)
            for name in FILES:
                (folder / name).mkdir(exist_ok=True)
            database = sqlite3.connect(folder / DATABASE)
            _log_ahead(database)
            return cls(folder, write, database)
        except (OSError, sqlite3.OperationalError) as error:
            raise _cannot_write(folder, error) from error

    def rewind(self, to: Checkpoint | None, jobs: Iterable[int] = (), turn: int = 0) -> None:
        """Goes back to a checkpoint, or to the start; the run's status becomes "running".

        Args:
            to: the checkpoint; None for the start.
            jobs: those that had ended by then.
            turn: the server's last turn by then.

        Raises:
            RunError: it cannot be written; the run is as it was.
        """
        with self._writing():
            unstamp(self.folder)
            rewind(self._db, self._digests, to, jobs, turn)
            marks = ", ".join("?" * len(_OF_ENDS))
            delete(self._db, self._digests, "meta", f"key IN ({marks})", *_OF_ENDS)
            self._set_meta({"status": "running"})
            if to is not None and self._digests.event_hash() != to.events:
                raise AssertionError("the rows that are left are not those of the checkpoint")
            self._commit()
        self._sweep()

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
        self._insert("server_events", map(event_row, events))

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

    def checkpoint(self, place: Place, saved: Saved, *, best: bool = False) -> None:
        """Saves what the run needs to go on from here, and commits everything so far.

        Args:
            place: where in the run this is.
            saved: what it needs.
            best: whether this is the best version so far.

        Raises:
            RunError: something cannot be written; what was saved before stays as it was.
        """
        # The files before their rows: a failure leaves no row that close() would commit.
        trees = {
            "versions": saved.servers,
            "outcomes": {job: tree for job, (tree, _) in saved.outcomes.items()},
        }
        files = {table: self._write_new(table, found) for table, found in trees.items()}
        with self._writing():
            for name in FILES:
                on_disk(self.folder / name)
            events = self._digests.event_hash() or ""
            add_checkpoint(self._db, self._digests, place, saved, files, events, best=best)
            self._commit()
            # Commits are on the disk some time later, but for this one.
            log = self.folder / f"{DATABASE}-wal"
            on_disk(log if log.exists() else self.folder / DATABASE)
        self._sweep()

    def _write_new(self, table: str, trees: Mapping[int, Any]) -> dict[int, SavedFile]:
        """Writes those of the trees of a table that have no file yet."""
        with self._writing():
            key = next(iter(STORED[table]))
            known = {number for (number,) in self._db.execute(f"SELECT {key} FROM {table}")}  # noqa: S608 - our own names
        names = {number: f"{table}/{_NAMES[table].format(number)}" for number in trees if number not in known}
        return {
            number: SavedFile(name, self._write(self.folder / name, trees[number]))
            for number, name in names.items()
        }

    def _sweep(self) -> None:
        """Deletes the files that no row refers to."""
        tables = " UNION ".join(f"SELECT file FROM {table}" for table in FILES)  # noqa: S608 - our own names
        kept = {name for (name,) in self._db.execute(tables)}
        for folder in FILES:
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
            file = self._folder / (PLANNED if self._planned else DATABASE)
            self._unnamed.replace(file)
            self._unnamed, self._db = None, sqlite3.connect(file)
            if not self._planned:
                _log_ahead(self._db)

    def abandon(self) -> None:
        """Closes the database; what was committed stays, and a run that was not planned leaves nothing."""
        self._db.close()
        if self._folder is not None and self._unnamed is not None:
            discard(self._folder)

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
        if status == "done":
            keep_one(self._db, self._digests)
        self._set_meta({"status": status, **facts})
        self._commit()
        if self._folder is not None:
            self._sweep()


def discard(folder: Path) -> None:
    """Removes what a run that never began made in its directory, and the directory if it is empty."""
    for name in (UNNAMED, PLANNED, _RESERVE, PLAN):
        with suppress(OSError):
            (folder / name).unlink()
    for name in FILES:
        with suppress(OSError):
            (folder / name).rmdir()
    with suppress(OSError):
        folder.rmdir()


def _hold_free(folder: Path) -> None:
    (folder / _RESERVE).write_bytes(os.urandom(_RESERVE_BYTES))


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
