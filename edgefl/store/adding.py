"""Adds rows to a run's database, and keeps the digests of its tables."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.core.errors import RunError
from edgefl.core.event import ServerEvent
from edgefl.store.digests import SCALARS, Digests, in_chunks
from edgefl.store.rows import INSERT_JOB, event_row, job_columns
from edgefl.store.schema import STORED


class Rows:
    """A run's database, open for writing.

    Once a row could not be written, none is written any more.
    """

    def __init__(self, folder: Path | None, database: sqlite3.Connection) -> None:
        """Opens it.

        Args:
            folder: the run's directory; None in memory.
            database: with the tables of a run.
        """
        self._folder = folder
        self._db = database
        self._digests = Digests.load(database)
        self._broken: RunError | None = None

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
            raise self._given_up(cannot_write(self._folder, error)) from error

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


def cannot_write(folder: Path | None, error: Exception) -> RunError:
    """What is told where a run's directory cannot be written."""
    if isinstance(error, RunError):
        return error
    reason = getattr(error, "strerror", None) or error
    return RunError(f"cannot write {folder}: {reason}", where=str(folder or ""))
