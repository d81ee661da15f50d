"""Writes a run's directory; see ``edgefl.store``."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from edgefl.core.clients import Ints
from edgefl.core.errors import RunError
from edgefl.core.files import all_on_disk, atomically, on_disk
from edgefl.core.plan import Plan
from edgefl.core.yamls import dump
from edgefl.store.adding import Rows, cannot_write
from edgefl.store.checkpoints import (
    Checkpoint,
    CheckpointPlace,
    Saved,
    SavedFile,
    add_checkpoint,
    delete,
    keep_one,
    rewind,
    sweep,
)
from edgefl.store.checks import is_settled, settle, unstamp
from edgefl.store.digests import Digests
from edgefl.store.folders import (
    DATABASE,
    FILES,
    PLAN,
    PLANNED,
    UNNAMED,
    begin,
    discard,
    free,
    fresh_folder,
    hold_free,
)
from edgefl.store.reader import Reader, check_run
from edgefl.store.rows import count_rows, plan_rows, state_file
from edgefl.store.schema import FORMAT, SCHEMA_SQL, STORED

# Facts about how a run ended.
_OF_ENDS = ("rounds", "stopped", "virtual_s", "measures_host_s", "reason", "host_wall_s")
# The files of tables, by number.
_NAMES = {"versions": "{:06d}.safetensors", "outcomes": "{:08d}.safetensors"}


class Store(Rows):
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
        super().__init__(folder, database)
        self._write = write
        self._unnamed = unnamed
        self._planned = planned

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
                hold_free(folder)
            # SQLite's own files may never be written by a group.
            file.touch()
            database = sqlite3.connect(file)
            # Nobody reads the file yet, and it is of no use half-made.
            database.execute("PRAGMA journal_mode=MEMORY")
            return cls._new(folder, write, database, file, planned=planned)
        except (OSError, RunError, sqlite3.OperationalError) as error:
            discard(folder)
            raise cannot_write(folder, error) from error

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
            hold_free(folder)
            for name in FILES:
                (folder / name).mkdir(exist_ok=True)
            database = sqlite3.connect(folder / DATABASE)
            _log_ahead(database)
            return cls(folder, write, database)
        except (OSError, sqlite3.OperationalError) as error:
            raise cannot_write(folder, error) from error

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
            self._commit_to_disk()
        sweep(self.folder, self._db)

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

    def checkpoint(self, place: CheckpointPlace, saved: Saved, *, best: bool = False) -> None:
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
        names = [file.file for written in files.values() for file in written.values()]
        names += [f"states/{state_file(state.job)}" for state in saved.states.values()]
        with self._writing():
            all_on_disk(self.folder / name for name in names)
            all_on_disk(self.folder / name for name in FILES)
            events = self._digests.event_hash() or ""
            add_checkpoint(self._db, self._digests, place, saved, files, events, best=best)
            self._commit_to_disk()
        sweep(self.folder, self._db)

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

    def commit(self, *, to_disk: bool = False) -> None:
        """Makes everything added so far durable; the first one makes the directory a run.

        Args:
            to_disk: whether to wait until it would outlast a power cut, too.

        Raises:
            RunError: it cannot be written.
        """
        with self._writing():
            if to_disk:
                self._commit_to_disk()
            else:
                self._commit()

    def _commit_to_disk(self) -> None:
        """Commits, and waits for the disk: other commits are there some time later."""
        self._commit()
        log = self.folder / f"{DATABASE}-wal"
        on_disk(log if log.exists() else self.folder / DATABASE)
        # The names of both may be new.
        on_disk(self.folder)

    def _commit(self) -> None:
        self._digests.save(self._db)
        self._db.commit()
        if self._unnamed is not None and self._folder is not None:
            self._db.close()
            file = self._folder / (PLANNED if self._planned else DATABASE)
            self._unnamed.replace(file)
            all_on_disk([self._folder, self._folder.parent])
            self._unnamed, self._db = None, sqlite3.connect(file)
            if not self._planned:
                _log_ahead(self._db)

    def abandon(self) -> None:
        """Closes the database; what was committed stays, and a run that was not planned leaves nothing."""
        if self._folder is not None and self._unnamed is None:
            free(self._folder)
            if is_settled(self._folder):
                with suppress(sqlite3.Error):
                    self._db.rollback()
                    settle(self._db, self._folder)
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
                self._given_up(cannot_write(self._folder, error))
                # Where files may not grow, the log of changes begins anew once they are in the database.
                with suppress(sqlite3.Error):
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._end(status, facts)
            if self._folder is not None:
                settle(self._db, self._folder)
        except (OSError, sqlite3.OperationalError) as error:
            raise cannot_write(self._folder, error) from error
        finally:
            self._db.close()

    def _make_room(self) -> None:
        """Frees what was held free; a run that could not even begin leaves no database.

        Raises:
            RunError: the run could not begin.
        """
        if self._folder is None:
            return
        free(self._folder)
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
        if self._folder is None:
            self._commit()
            return
        self._commit_to_disk()
        sweep(self.folder, self._db)


def _log_ahead(database: sqlite3.Connection) -> None:
    """Lets others read while rows are written."""
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=NORMAL")


def _nowhere(path: Path, _: Any) -> str:
    """A store in memory has no files."""
    raise AssertionError(f"a store in memory saves no {path.name}")
