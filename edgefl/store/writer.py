"""Writes a run's directory; see ``edgefl.store``."""

import errno
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.core.arrays import Ints
from edgefl.core.errors import RunError
from edgefl.core.event import ENDINGS, JOB, ServerEvent
from edgefl.core.files import all_on_disk, atomically, on_disk, replacing, sha256_of
from edgefl.core.plan import Plan
from edgefl.core.yamls import dump
from edgefl.store.checkpoints import Checkpoint, CheckpointPlace, Saved, SavedFile, filed, keep_newest, sweep
from edgefl.store.events import DIGEST, EventDigest, event_rows
from edgefl.store.folders import DATABASE, FILES, HOST, IN_MEMORY, PLAN, STAMP, discard
from edgefl.store.locks import works_on
from edgefl.store.plans import plan_rows
from edgefl.store.reader import Reader
from edgefl.store.schema import COLUMNS, FORMAT, SCHEMA_SQL

# Facts about how a run ended.
_OF_ENDS = ("rounds", "stopped", "virtual_s", "measures_host_s", "reason", "host_wall_s")


class Store:
    """One run's directory, open for writing; ``read`` opens it for reading.

    What cannot be written is a RunError, which ends the run: no other row is written any more but its end, so
    that what is there is a whole commit.
    """

    def __init__(self, folder: Path, database: sqlite3.Connection) -> None:
        """Use ``planned``, ``open`` or ``in_memory``."""
        self.folder = folder
        self._db = database
        self._broken: RunError | None = None
        self._load()

    def _load(self) -> None:
        """Takes the digest of events from the last commit."""
        rows = self._db.execute("SELECT value FROM meta WHERE key = ?", (DIGEST,)).fetchall()
        self._events = EventDigest(json.loads(rows[0][0]) if rows else None)

    @classmethod
    @contextmanager
    def planned(cls, folder: Path) -> "Iterator[Store]":
        """Makes a run's directory, which is planned in the block; nothing of it is left on failure."""
        with _telling(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if any((folder / name).exists() for name in (DATABASE, *FILES)):
                raise FileExistsError(errno.EEXIST, "it holds a run")
        try:
            with _telling(folder):
                for name in FILES:
                    (folder / name).mkdir()
                # A run is known by its database, which gets its name when all is known.
                with replacing(folder / DATABASE) as file, closing(sqlite3.connect(file)) as database:
                    database.execute("PRAGMA journal_mode=MEMORY")
                    store = cls._new(folder, database, "planned")
                    yield store
                    store.commit()
                all_on_disk([folder, folder.parent])
                cls(folder, sqlite3.connect(folder / DATABASE)).abandon()
        except BaseException:
            discard(folder)
            raise

    @classmethod
    def in_memory(cls) -> "Store":
        """Makes a store without a directory, of rows alone; they are gone when it is closed."""
        return cls._new(IN_MEMORY, sqlite3.connect(IN_MEMORY), "running")

    @classmethod
    def _new(cls, folder: Path, database: sqlite3.Connection, status: str) -> "Store":
        # Everything up to the first commit is one transaction.
        database.executescript(f"BEGIN; {SCHEMA_SQL}")
        store = cls(folder, database)
        store.set_meta({"format": FORMAT, "status": status})
        return store

    @classmethod
    def open(cls, folder: Path) -> "Store":
        """Opens a run that was planned, which begins now, or one that was found whole, to go on with it.

        From now on others can read it while rows are written.
        """
        works_on(folder)
        with _telling(folder):
            # Half-written ones of a process that was killed.
            for path in folder.glob("*.tmp"):
                path.unlink()
            for name in FILES:
                (folder / name).mkdir(exist_ok=True)
            (folder / STAMP).unlink(missing_ok=True)
            store = cls(folder, sqlite3.connect(folder / DATABASE))
            store._db.execute("PRAGMA journal_mode=WAL")
            store._db.execute("PRAGMA synchronous=NORMAL")
            with store._db as database:
                begins = "UPDATE meta SET value = ? WHERE key = 'status' AND value = ?"
                database.execute(begins, ('"running"', '"planned"'))
                # Its file may be lost or damaged.
                for (content,) in database.execute("SELECT content FROM plan").fetchall():
                    store._write_plan(content)
            return store

    def reader(self) -> Reader:
        """Reads what was added so far, also what is not committed; ends with the store."""
        self.set_meta({DIGEST: self._events.sums})
        return Reader(self.folder, self._db)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Around all that writes rows: where that fails, those since the last commit are dropped."""
        if self._broken is not None:
            raise self._broken
        try:
            with _telling(self.folder):
                yield
        except RunError as error:
            self._broken = error
            with suppress(sqlite3.Error):
                self._db.rollback()
                self._load()
            raise

    def set_meta(self, values: Mapping[str, Any]) -> None:
        """Sets facts about the whole run, as JSON values."""
        rows = [(key, json.dumps(value)) for key, value in values.items()]
        with self._writing():
            self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)

    def add(self, table: str, *rows: Mapping[str, Any]) -> None:
        """Adds rows as ``insert``, by column. One that a row lacks is NULL."""
        with self._writing():
            for row in rows:
                marks = ", ".join(f":{name}" for name in row)
                self._db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", row)  # noqa: S608 - our own names

    def insert(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Adds rows of all columns; the next commit makes them durable."""
        marks = ", ".join("?" * len(COLUMNS[table]))
        with self._writing():
            self._db.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608 - our own names

    def add_events(self, events: Iterable[ServerEvent]) -> None:
        """Adds the server's own events, which belong to no job."""
        rows = event_rows(events)
        self.insert("server_events", rows)
        self._events.add_events(rows)

    def add_tails(self, rows: np.ndarray) -> None:
        """Adds the tails that were settled when the run ended, rows of ``edgefl.core.event.TAIL``."""
        self.insert("settled_tails", rows.tolist())
        self._events.add("settled_tails", rows)

    def add_jobs(self, rows: np.ndarray, exchanges: Sequence[str]) -> None:
        """Adds ended jobs, rows of ``edgefl.core.event.JOB``, whose numbers stand for these exchanges."""
        rows = rows[np.argsort(rows["job"])]
        columns = {name: rows[name].tolist() for name in JOB.names or ()}
        columns["exchange"] = [exchanges[place] for place in columns["exchange"]]
        columns["ending"] = [str(ENDINGS[number]) for number in columns["ending"]]
        columns["into_version"] = [None if version < 0 else version for version in columns["into_version"]]
        self.insert("jobs", zip(*columns.values(), [None] * len(rows), strict=True))
        self._events.add("jobs", rows)

    def add_scalars(self, scalars: Mapping[int, Mapping[str, float]]) -> None:
        """Adds training's scalars to the rows of jobs, by job, once for each."""
        rows = [(json.dumps(dict(values)), job) for job, values in scalars.items()]
        if not rows:
            return
        with self._writing():
            update = "UPDATE jobs SET scalars = ? WHERE job = ? AND scalars IS NULL"
            if self._db.executemany(update, rows).rowcount != len(rows):
                raise AssertionError("scalars of a job that has not ended, or has some")

    def write_plan(
        self,
        plan: Plan,
        resolved: Mapping[str, Any],
        test_samples: Iterable[int],
        class_counts: Ints | None = None,
    ) -> None:
        """Writes what is known before the run starts: its settings, clients, refusals and prices.

        Each client has ``test_samples``, a number, and ``class_counts``, its training samples of each class,
        (clients, classes), which None leaves out.
        """
        for table, rows in plan_rows(plan, test_samples, class_counts):
            self.insert(table, rows)
        with self._writing():
            self._write_plan(json.dumps(resolved))

    def replace_plan(self, resolved: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Replaces the settings of a run that is to be longer, and the facts that follow from them.

        A kill leaves the old ones or the new ones. What exists only because the run was to end must be gone
        before: see ``rewind``. Otherwise a run that is killed just after this would go on from there.
        """
        with self._writing():
            self._write_plan(json.dumps(resolved))
            self.set_meta(facts)
            self._commit_to_disk()

    def _write_plan(self, content: str) -> None:
        """Writes the settings, and ``plan.yaml``, which has them for people."""
        self._db.execute("DELETE FROM plan")
        self._db.execute("INSERT INTO plan VALUES (?)", (content,))
        if self.folder != IN_MEMORY:
            atomically({self.folder / PLAN: dump(json.loads(content)).encode()})

    def rewind(self, to: Checkpoint | None, jobs: Iterable[int] = (), turn: int = 0) -> None:
        """Goes back to a checkpoint, or with None to the start; the run's status becomes "running".

        By then the jobs had ended, and the server's last turn was ``turn``. Where other jobs or events are
        damaged, too, this is a ``RunError``, and the run is as it was.
        """
        number, version, evaluated = (to.number, *to.place[1:3]) if to else (0, 0, False)
        with self._writing():
            for table, where, values in (
                ("jobs", "job NOT IN (SELECT value FROM json_each(?))", (json.dumps(list(jobs)),)),
                ("settled_tails", "TRUE", ()),
                ("server_events", "turn > ?", (turn,)),
                ("merges", "version > ?", (version,)),
                *(
                    (table, "version > ? OR version = ? AND NOT ?", (version, version, evaluated))
                    for table in ("evaluations", "client_evaluations", "measures")
                ),
                ("states", "checkpoint > ?", (number,)),
                ("checkpoints", "checkpoint > ?", (number,)),
                ("versions", "? OR version > ?", (to is None, version)),
            ):
                self._db.execute(f"DELETE FROM {table} WHERE {where}", values)  # noqa: S608 - our own names
            keep_newest(self._db)
            self._events = EventDigest.of(self._db)
            if self._events.text() != (to.events if to else ""):
                raise RunError(f"{self.folder.name}: its jobs or events are not those that were written")
            self._db.execute(f"DELETE FROM meta WHERE key IN {_OF_ENDS}")  # noqa: S608 - our own names
            self.set_meta({"status": "running"})
            self._commit_to_disk()
        sweep(self.folder, self._db)

    def checkpoint(
        self, place: CheckpointPlace, saved: Saved, write: Callable[[Path, Any], str], *, best: bool = False
    ) -> None:
        """Saves what the run needs to go on from here, and commits everything so far.

        Trees are written by ``write``, atomically, which returns the file's SHA-256. The version may be the
        ``best`` so far. Where something cannot be written, what was saved before stays as it was.
        """
        with self._writing():
            known = filed(self._db)
        new: dict[str, dict[int, SavedFile]] = {"versions": {}, "outcomes": {}}
        outcomes = {number: tree for number, (tree, _) in saved.outcomes.items()}
        for table, trees in (("versions", saved.servers), ("outcomes", outcomes)):
            for number, tree in trees.items():
                name = f"{table}/{number:06d}.safetensors"
                if name not in known:
                    # Before its row: a failure leaves none that close() would commit.
                    new[table][number] = SavedFile(name, write(self.folder / name, tree))
        files = [*new["versions"].values(), *new["outcomes"].values()]
        files += [file for _, file in saved.states.values()]
        with self._writing():
            all_on_disk(self.folder / name for name in [*(file.file for file in files), *FILES])
            newest = "SELECT checkpoint, best FROM checkpoints ORDER BY checkpoint DESC LIMIT 1"
            before, chosen = self._db.execute(newest).fetchone() or (0, None)
            chosen = place.version if best else chosen
            versions = {*saved.servers, *([] if chosen is None else [chosen])}
            lists = map(json.dumps, (sorted(versions), sorted(outcomes), dict(saved.content)))
            self.insert("checkpoints", [(before + 1, *place, chosen, self._events.text(), *lists)])
            self.insert("versions", [(version, *file) for version, file in new["versions"].items()])
            plain = {number: json.dumps(dict(data)) for number, (_, data) in saved.outcomes.items()}
            self.insert("outcomes", [(one, *file, plain[one]) for one, file in new["outcomes"].items()])
            states = [(job, client, *file, before + 1) for client, (job, file) in saved.states.items()]
            self.insert("states", states)
            keep_newest(self._db)
            self._commit_to_disk()
        sweep(self.folder, self._db)

    def commit(self) -> None:
        """Makes everything added so far durable."""
        with self._writing():
            self.set_meta({DIGEST: self._events.sums})
            self._db.commit()

    def _commit_to_disk(self) -> None:
        """Commits, and waits for the disk: other commits are there some time later."""
        self.commit()
        log = self.folder / f"{DATABASE}-wal"
        on_disk(log if log.exists() else self.folder / DATABASE)
        # The names of both may be new.
        on_disk(self.folder)

    def abandon(self) -> None:
        """Closes the database; what was committed stays."""
        with suppress(sqlite3.Error):
            self._db.rollback()
            if self.folder != IN_MEMORY:
                self._settle()
        self._db.close()

    def _settle(self) -> None:
        """Leaves a database that needs no log, and the SHA-256 of all files; a run is whole without."""
        with suppress(OSError, RunError, sqlite3.OperationalError):
            # A reader that holds the database back when a run ends is not waited for.
            self._db.execute("PRAGMA busy_timeout=200")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            (mode,) = self._db.execute("PRAGMA journal_mode=DELETE").fetchone()
            if mode == "delete":
                others = [self.folder / name for name in (DATABASE, PLAN, HOST)]
                sums = filed(self._db) | {path.name: sha256_of(path) for path in others if path.is_file()}
                lines = [f"{sums[name]}  {name}\n" for name in sorted(sums)]
                atomically({self.folder / STAMP: "".join(lines).encode()})

    def close(self, status: str, **facts: Any) -> None:
        """Ends the run: "done", "failed" or "interrupted", with facts such as the reason.

        Where this cannot be written, what was committed stays, as of a run that was killed.
        """
        # How it ended is written whatever could not be before.
        self._broken = None
        try:
            with self._writing():
                if status == "done":
                    keep_newest(self._db, 1)
                self.set_meta({"status": status, **facts})
                self._commit_to_disk()
                sweep(self.folder, self._db)
                self._settle()
        finally:
            self._db.close()


@contextmanager
def _telling(folder: Path) -> Iterator[None]:
    """Tells which run's directory cannot be written."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RunError(f"cannot write {folder}: {reason}", where=str(folder)) from error
