"""Reads a run's directory."""

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgefl.core.errors import UnknownNameError, UserError, nearest, short
from edgefl.core.event import JOB
from edgefl.core.files import sha256_of
from edgefl.core.yamls import RECORDED, Document
from edgefl.store.events import DIGEST, JOBS, EventDigest
from edgefl.store.folders import DATABASE, HOST, IN_MEMORY, PLAN, STAMP
from edgefl.store.locks import is_worked_on
from edgefl.store.schema import COLUMNS, FORMAT, SCHEMA, schema_of

# A view has no order of its own.
_ORDER = {"clients": "client", "refusals": "client", "events": "seq"}


class Reader:
    """One run's directory, open for reading, as of one commit; or the rows of a store in memory.

    Attributes:
        where: the directory as text; empty in memory.
        meta: facts about the whole run.
    """

    def __init__(
        self, folder: Path, database: sqlite3.Connection | None = None, *, trusted: bool = False
    ) -> None:
        """Opens a run directory, or reads a database that is open.

        Where it is ``trusted``, no damage is looked for, which takes as long as reading all rows: for a run
        that this process writes, and reads again and again while it does. One that is no run, of another
        format, or damaged is a ``UserError``, in all methods that read, too.
        """
        self.folder, self.where = folder, "" if folder == IN_MEMORY else str(folder)
        # Looked at first: a run that ends meanwhile was not killed.
        self._in_progress = database is not None or is_worked_on(folder)
        with self._reading():
            self._db = database or _opened(self.folder)
        try:
            self._db.row_factory = sqlite3.Row
            with self._reading():
                if database is None:
                    # All that is read is of one commit, however the run goes on.
                    self._db.execute("BEGIN")
                rows = self._db.execute("SELECT key, value FROM meta")
                self.meta: dict[str, Any] = {key: json.loads(value) for key, value in rows}
                if database is None:
                    self._check(trusted=trusted)
        except BaseException:
            self._db.close()
            raise

    @property
    def status(self) -> str:
        """How the run stands: "planned", "running", "killed", "interrupted", "failed" or "done".

        One that was killed cannot say so: it says "running", and no command is at it, before or after it was
        read.
        """
        status = str(self.meta["status"])
        killed = status == "running" and not self._in_progress and not is_worked_on(self.folder)
        return "killed" if killed else status

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Says of what cannot be read that it is damaged, as a ``UserError``."""
        try:
            yield
        except (sqlite3.DatabaseError, OSError, ValueError, TypeError) as error:
            # SQLite quotes the definition of a view, which is long, and names that are no text any more.
            what = f"{self.folder.name}: run.sqlite cannot be read: {short(str(error))}"
            raise UserError(what, where=self.where) from error

    def _check(self, *, trusted: bool) -> None:
        """Refuses a database of another format, or one that is damaged, unless it is to be trusted."""
        number = self.meta.get("format")
        if not isinstance(number, int):
            raise ValueError("it has no format number")  # noqa: TRY004 - of a file that is read
        if number != FORMAT:
            raise OtherFormatError(
                f"{self.folder.name} is a run of format {number}; this edgefl reads format {FORMAT}",
                where=self.where,
                hint="read it with the edgefl that wrote it, or run its scenario again",
            )
        if what := "" if trusted else self._damage():
            raise UserError(
                f"{self.folder.name}: run.sqlite is damaged: {what}",
                where=self.where,
                hint="run its scenario again",
            )

    def _damage(self) -> str:
        """What is wrong with the database: of a run that ended any bit, of another one what can be told."""
        if known := noted(self.folder):
            return content_damage(self.folder / DATABASE, known[DATABASE]).partition(": ")[2]
        if schema_of(self._db) != SCHEMA:
            return "its tables or views are not those that were made"
        problems = [row[0] for row in self._db.execute("PRAGMA integrity_check(1)")]
        if problems != ["ok"]:
            return str(problems[0]).splitlines()[-1]
        try:
            stored, found = self.meta.get(DIGEST), EventDigest.of(self._db)
        except (ValueError, TypeError, OverflowError) as error:
            return f"a row of its jobs or events: {error}"
        is_same = stored is None or EventDigest(stored).sums == found.sums
        return "" if is_same else "its jobs or events are not those that were written"

    def rows(self, table: str, order: str = "") -> list[dict[str, Any]]:
        """A table as a list of dicts, in the order it was written unless another is given."""
        check_table(table, self.where)
        return self.query(f"SELECT * FROM {table} ORDER BY {order or _ORDER.get(table, 'rowid')}")  # noqa: S608 - one of our own names

    def pieces(self, table: str, size: int = 16_384) -> Iterator[list[tuple[Any, ...]]]:
        """The columns of a table of a run in the order of ``rows``, ``size`` rows or fewer at a time."""
        cursor = self._db.cursor()
        cursor.row_factory = None
        with self._reading():
            cursor.execute(f"SELECT * FROM {table} ORDER BY {_ORDER.get(table, 'rowid')}")  # noqa: S608 - one of our own names
            while rows := cursor.fetchmany(size):
                yield list(zip(*rows, strict=True))

    def query(self, sql: str, *values: Any, **named: Any) -> list[dict[str, Any]]:
        """The rows of a SELECT, as a list of dicts; its ``?`` are ``values``, its ``:names`` others."""
        with self._reading():
            return [dict(row) for row in self._db.execute(sql, named or values)]

    def arrays(self, sql: str, **dtypes: type[np.generic]) -> dict[str, NDArray[Any]]:
        """The columns of a SELECT as arrays, by name and type; reals alone may be NULL, which is NaN."""
        cursor = self._db.cursor()
        cursor.row_factory = None
        with self._reading():
            found = np.fromiter(cursor.execute(sql), dtype=np.dtype(list(dtypes.items())))
        return {name: np.ascontiguousarray(found[name]) for name in dtypes}

    def jobs(self) -> dict[str, NDArray[Any]]:
        """All jobs that ended, by number: columns of ``core.event.JOB``."""
        return self.arrays(JOBS, **{name: JOB[name].type for name in JOB.names or ()})

    def event_hash(self) -> str | None:
        """16 hexadecimal digits by which two people see that they ran the same events; None before the first.

        Runs of one format of the store have the same hash if and only if they have the same jobs, events of
        the server and settled tails, in every column, up to collisions (about 2^-64). Engines do not matter,
        nor wall time. The digest is stored with each commit, so no row is read.
        """
        return EventDigest(self.meta.get(DIGEST)).text() or None

    @cached_property
    def document(self) -> Document:
        """The resolved scenario, its fleet and its devices, as in ``plan.yaml``."""
        with self._reading():
            rows = self._db.execute("SELECT content FROM plan").fetchall()
            try:
                data = json.loads(rows[0]["content"])
            except (ValueError, IndexError) as error:
                raise ValueError("its plan is damaged") from error
        return Document(str(self.folder / PLAN), data, context=RECORDED)

    def host(self) -> dict[str, Any]:
        """``host.json`` as plain data; empty if missing or damaged, since no result depends on it."""
        path = self.folder / HOST
        with suppress(OSError, ValueError, TypeError, RecursionError):
            known = noted(self.folder).get(HOST)
            if known is None or not content_damage(path, known):
                return dict(json.loads(path.read_text(encoding="utf-8")))
        return {}

    def close(self) -> None:
        self._db.close()


def check_table(table: str, where: str = "", others: Sequence[str] = ()) -> None:
    """Refuses a name that no table of a run has; ``others`` could be meant besides."""
    if table not in COLUMNS:
        hint = nearest(str(table), [*COLUMNS, *others])
        raise UnknownNameError(f"unknown table {table!r}", where=where, hint=hint)


def _opened(folder: Path) -> sqlite3.Connection:
    """A run's database, for reading.

    In WAL mode SQLite creates files beside the database even for a reader. In a read-only folder nobody can
    be writing, so the file is opened as immutable.
    """
    if not (folder / DATABASE).is_file():
        raise UserError(f"{folder} is not a run directory", where=str(folder), hint="it has no run.sqlite")
    file, writable = folder / DATABASE, os.access(folder, os.W_OK)
    if writable and file.with_name(f"{file.name}-journal").exists():
        # Where a kill left changes half-made, who reads takes them back, which a mere reader may not.
        with suppress(sqlite3.Error), closing(sqlite3.connect(file)) as database:
            database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    how = "mode=ro" if writable or file.with_name(f"{file.name}-wal").exists() else "immutable=1"
    return sqlite3.connect(f"{file.resolve().as_uri()}?{how}", uri=True)


def is_settled(folder: Path) -> bool:
    """Whether a run is closed, and nobody read it then."""
    return (folder / STAMP).exists()


def noted(folder: Path) -> dict[str, str]:
    """By file, the SHA-256 that it had when the run was closed; empty while it is open."""
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


class OtherFormatError(UserError):
    """A run that another version of edgefl wrote, and alone can read."""


@contextmanager
def read(folder: Path, *, trusted: bool = False) -> Iterator[Reader]:
    """A reader that is closed at the end; its arguments are those of ``Reader``."""
    with closing(Reader(folder, trusted=trusted)) as reader:
        yield reader
