"""A run on disk: ``plan.yaml``, ``run.sqlite``, ``host.json`` and safetensors files of what was learned.

Rows are committed once a version, together with the names of the files they refer to. Files are immutable
and written under a temporary name first; a file that no row refers to is deleted only after the commit.
Nothing is pickled.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edgefl.core.errors import UnknownNameError, UserError, nearest
from edgefl.core.event import Event
from edgefl.core.files import atomically
from edgefl.core.plan import Plan
from edgefl.core.yamls import Document, dump, plain

FORMAT = 2

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE clients (
  client INTEGER PRIMARY KEY, device TEXT NOT NULL, link TEXT NOT NULL, dtype TEXT NOT NULL,
  model TEXT NOT NULL,
  samples INTEGER NOT NULL, test_samples INTEGER NOT NULL, slowdown REAL NOT NULL,
  admitted INTEGER NOT NULL);
CREATE TABLE refusals (
  client INTEGER PRIMARY KEY, device TEXT NOT NULL, exchange TEXT NOT NULL, needs_bytes INTEGER NOT NULL,
  has_bytes INTEGER, parts TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE prices (
  exchange TEXT NOT NULL, client INTEGER NOT NULL, down_s REAL, compute_s REAL, up_s REAL,
  receive_j REAL, compute_w REAL, transmit_j REAL, idle_w REAL, tail_w REAL, tail_s REAL,
  down_bytes INTEGER, up_bytes INTEGER, flops INTEGER, steps INTEGER,
  peak_bytes INTEGER, PRIMARY KEY (exchange, client));
CREATE TABLE payloads (
  exchange TEXT NOT NULL, model TEXT NOT NULL, direction TEXT NOT NULL, part TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (exchange, model, direction, part));
CREATE TABLE events (
  seq INTEGER PRIMARY KEY, t_s REAL NOT NULL, kind TEXT NOT NULL, exchange TEXT NOT NULL,
  round INTEGER NOT NULL, client INTEGER NOT NULL, job INTEGER NOT NULL, version INTEGER NOT NULL,
  seconds REAL NOT NULL,
  down_bytes INTEGER NOT NULL, up_bytes INTEGER NOT NULL, flops INTEGER NOT NULL, joules REAL,
  tail_j REAL, idle_j REAL);
CREATE TABLE rounds (
  version INTEGER PRIMARY KEY, exchange TEXT NOT NULL, round INTEGER NOT NULL, t_s REAL NOT NULL,
  jobs INTEGER NOT NULL, slowest_client INTEGER, loss REAL, host_s REAL NOT NULL);
CREATE TABLE evaluations (
  version INTEGER NOT NULL, round INTEGER NOT NULL, t_s REAL NOT NULL, model TEXT NOT NULL,
  accuracy REAL NOT NULL, loss REAL NOT NULL, spread REAL, clients INTEGER, untrained INTEGER,
  down_bytes INTEGER NOT NULL,
  up_bytes INTEGER NOT NULL, joules REAL, energy_known INTEGER NOT NULL, energy_clients INTEGER NOT NULL,
  host_s REAL NOT NULL, PRIMARY KEY (version, model));
CREATE TABLE client_evaluations (
  version INTEGER NOT NULL, client INTEGER NOT NULL, accuracy REAL NOT NULL, samples INTEGER NOT NULL,
  PRIMARY KEY (version, client));
CREATE TABLE versions (
  version INTEGER PRIMARY KEY, file TEXT NOT NULL, last INTEGER NOT NULL, best INTEGER NOT NULL);
CREATE TABLE states (client INTEGER PRIMARY KEY, job INTEGER NOT NULL, file TEXT NOT NULL);
"""

TABLES = tuple(re.findall(r"CREATE TABLE (\w+)", _SCHEMA))


def state_file(job: int) -> str:
    """The name, in the folder ``states``, of the file with the state that a job wrote."""
    return f"{job:08d}.safetensors"


class Store:
    """One run's directory, open for writing; see ``read`` for a reader.

    Attributes:
        folder: the directory.
    """

    def __init__(self, folder: Path, write: Callable[[Path, Any], None]) -> None:
        """Makes a fresh run directory.

        Args:
            folder: where.
            write: writes what was learned to a path, whole or not at all; rows do not need to know tensors.

        Raises:
            UserError: it exists and is not empty, or cannot be written.
        """
        self.folder = folder
        self._write = write
        fresh_folder(folder)
        try:
            (folder / "versions").mkdir()
            (folder / "states").mkdir()
            self._db = sqlite3.connect(folder / "run.sqlite")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_SCHEMA)
        except (OSError, sqlite3.OperationalError) as error:
            raise UserError(f"cannot write into {folder}: {error}", where=str(folder)) from error
        self.set_meta({"format": FORMAT, "status": "running"})
        self._db.commit()

    def set_meta(self, values: Mapping[str, Any]) -> None:
        """Facts about the whole run, as JSON values."""
        rows = [(key, json.dumps(value)) for key, value in values.items()]
        self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)

    def write_plan(self, plan: Plan, resolved: Mapping[str, Any], test_samples: Iterable[int]) -> None:
        """What is known before the run starts: ``plan.yaml`` and the rows about clients and prices."""
        atomically(self.folder / "plan.yaml", dump(resolved).encode())
        clients = plan.clients
        rows = zip(
            range(len(clients)),
            (clients.devices[index] for index in clients.device),
            (clients.links[index] for index in clients.link),
            (clients.dtypes[index] for index in clients.dtype),
            (clients.models[index] for index in clients.model),
            clients.samples.tolist(),
            test_samples,
            clients.slowdown.tolist(),
            clients.admitted.astype(int).tolist(),
            strict=True,
        )
        self._insert("clients", rows)
        self._insert(
            "refusals",
            [
                (
                    one.client,
                    one.device,
                    one.exchange,
                    one.needs_bytes,
                    one.has_bytes,
                    json.dumps(dict(one.parts)),
                    one.reason,
                )
                for one in plan.refusals
            ],
        )
        for prices in plan.prices:
            columns = (
                prices.down_s, prices.compute_s, prices.up_s,
                prices.receive_j, prices.compute_w, prices.transmit_j,
                prices.idle_w, prices.tail_w, prices.tail_s,
                prices.down_bytes, prices.up_bytes, prices.flops, prices.steps, prices.peak_bytes,
            )  # fmt: skip
            # SQLite stores NaN as NULL: an unknown energy reads back as None.
            values = zip(*(column.tolist() for column in columns), strict=True)
            self._insert("prices", [(prices.exchange, client, *row) for client, row in enumerate(values)])
            for model, trace in dict(zip(clients.models, prices.traces, strict=True)).items():
                for direction, parts in (("down", trace.down), ("up", trace.up)):
                    payloads = [
                        (prices.exchange, model, direction, part, size) for part, size in parts.items()
                    ]
                    self._insert("payloads", payloads)
        self._db.commit()

    def add_events(self, events: Iterable[Event]) -> None:
        """Adds events; they are durable with the next commit."""
        self._insert("events", [(*event[:2], str(event.kind), *event[3:8], *event.cost) for event in events])

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        """Adds one row; it is durable with the next commit."""
        names = ", ".join(row)
        marks = ", ".join("?" * len(row))
        self._db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))  # noqa: S608 - our own names

    def _insert(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        rows = list(rows)
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._db.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608 - our own table names

    def checkpoint(
        self, version: int, server: Any, states: Mapping[int, tuple[int, Any | None]], *, best: bool
    ) -> None:
        """Saves a version and the client states that are new, and commits everything so far.

        Args:
            version: the server version.
            server: its state.
            states: client -> (job that wrote it, state), those that changed since the last checkpoint; None
                for a state whose file is written already.
            best: whether this is the best version so far.

        Raises:
            RunError: a file cannot be written; what was saved before stays as it was.
        """
        name = f"versions/{version:06d}.safetensors"
        # All files before the first row: a failure among them leaves no row that close() would commit.
        self._write(self.folder / name, server)
        for job, state in states.values():
            if state is not None:
                self._write(self.folder / "states" / state_file(job), state)
        if best:
            self._db.execute("UPDATE versions SET best = 0")
        self._db.execute("UPDATE versions SET last = 0")
        self._db.execute(
            "INSERT INTO versions VALUES (?, ?, 1, ?) "
            "ON CONFLICT (version) DO UPDATE SET last = 1, best = MAX(best, excluded.best)",
            (version, name, int(best)),
        )
        rows = [(client, job, f"states/{state_file(job)}") for client, (job, _) in states.items()]
        self._db.executemany("INSERT OR REPLACE INTO states VALUES (?, ?, ?)", rows)
        self._db.execute("DELETE FROM versions WHERE last = 0 AND best = 0")
        self._db.commit()
        self._sweep()

    def _sweep(self) -> None:
        """Deletes the files that no row refers to any more."""
        kept = {
            name for (name,) in self._db.execute("SELECT file FROM versions UNION SELECT file FROM states")
        }
        for folder in ("versions", "states"):
            for path in (self.folder / folder).iterdir():
                if f"{folder}/{path.name}" not in kept:
                    path.unlink()

    def commit(self) -> None:
        """Makes everything added so far durable."""
        self._db.commit()

    def abandon(self) -> None:
        """Closes the database after a failed write, as far as it goes; what was committed stays."""
        self._db.close()

    def close(self, status: str, **facts: Any) -> None:
        """Ends the run: "done", "failed" or "interrupted", with facts such as the reason."""
        self.set_meta({"status": status, **facts})
        self._db.commit()
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()


class Reader:
    """One run's directory, open for reading.

    Attributes:
        folder: the directory.
    """

    def __init__(self, folder: Path) -> None:
        """Opens a run directory.

        Raises:
            UserError: it is not one, or of another format.
        """
        self.folder = folder
        if not (folder / "run.sqlite").is_file():
            raise UserError(f"{folder} is no run directory", where=str(folder), hint="it lacks run.sqlite")
        try:
            self._db = _opened(folder / "run.sqlite")
        except sqlite3.OperationalError as error:
            raise _damaged(folder, error) from error
        self._db.row_factory = sqlite3.Row
        try:
            self.meta = self._meta()
        except BaseException:
            self._db.close()
            raise

    def _meta(self) -> dict[str, Any]:
        try:
            meta = {row["key"]: json.loads(row["value"]) for row in self.query("SELECT key, value FROM meta")}
        except ValueError as error:
            raise _damaged(self.folder, error) from error
        if meta.get("format") != FORMAT:
            raise UserError(
                f"{self.folder.name} has format {meta.get('format')}; this edgefl reads {FORMAT}",
                where=str(self.folder),
            )
        return meta

    def rows(self, table: str, order: str = "rowid") -> list[dict[str, Any]]:
        """A table as a list of dicts.

        Raises:
            UnknownNameError: there is no such table.
            UserError: the file is damaged.
        """
        if table not in TABLES:
            raise UnknownNameError(
                f"a run has no table {table!r}", where=str(self.folder), hint=nearest(table, TABLES)
            )
        return self.query(f"SELECT * FROM {table} ORDER BY {order}")  # noqa: S608 - one of our own names

    def query(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """What a SELECT returns, as a list of dicts.

        Raises:
            UserError: the file is damaged.
        """
        try:
            return [dict(row) for row in self._db.execute(sql, values)]
        except sqlite3.DatabaseError as error:
            raise _damaged(self.folder, error) from error

    def plan(self) -> dict[str, Any]:
        """``plan.yaml`` as plain data."""
        return dict(plain(Document.read(self.folder / "plan.yaml").data))

    def host(self) -> dict[str, Any]:
        """``host.json`` as plain data; empty where it is missing or damaged, for no result depends on it."""
        try:
            found = json.loads((self.folder / "host.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def version(self, which: str = "last") -> Path:
        """The file with the server state of the "last" or "best" saved version.

        Raises:
            UserError: there is none.
        """
        found = self.query(f"SELECT file FROM versions WHERE {which} = 1")  # noqa: S608 - one of two words
        if not found:
            raise UserError("the run saved no version", where=str(self.folder))
        return Path(self.folder / found[0]["file"])

    def state(self, client: int) -> Path | None:
        """The file with a client's last saved state; None where it never wrote one."""
        found = self.query("SELECT file FROM states WHERE client = ?", client)
        return self.folder / found[0]["file"] if found else None

    def close(self) -> None:
        """Closes the database."""
        self._db.close()


def _opened(file: Path) -> sqlite3.Connection:
    """A run's database, to read.

    In its mode (WAL) SQLite makes files beside the database even for a reader. In a folder where it may not,
    nobody can be writing either, and it is told that the file does not change.
    """
    if os.access(file.parent, os.W_OK) or file.with_name(f"{file.name}-wal").exists():
        return sqlite3.connect(file)
    return sqlite3.connect(f"{file.resolve().as_uri()}?immutable=1", uri=True)


def _damaged(folder: Path, error: Exception) -> UserError:
    return UserError(f"{folder.name}: run.sqlite cannot be read: {error}", where=str(folder))


@contextmanager
def read(folder: Path) -> Iterator[Reader]:
    """A reader that is closed at the end."""
    reader = Reader(folder)
    try:
        yield reader
    finally:
        reader.close()


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
        raise UserError(f"cannot make {folder}: {error.strerror}", where=str(folder)) from error


def is_run(folder: Path) -> bool:
    """Whether a directory holds one run."""
    return (folder / "run.sqlite").is_file()


def runs_in(folder: Path) -> list[Path]:
    """The run directories of a group, in order; a run directory itself is a group of one.

    Raises:
        UserError: there are none.
    """
    if is_run(folder):
        return [folder]
    runs = (
        sorted((path.parent for path in folder.glob("*/run.sqlite")), key=_by_number)
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
    return [(int(digits or 0), text) for digits, text in re.findall(r"(\d+)|(\D+)", path.name)]
