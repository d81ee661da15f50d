"""Damage in the log of changes: found wherever SQLite would silently lose commits, and nowhere else."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3

import pytest
from damage import flipped, zeroed

from edgefl.store import Store, read
from edgefl.store.wal import lost_commits

ROW = {"exchange": "x" * 300, "round": 0, "t_s": 4.0, "jobs": 2, "host_s": 0.5}


@pytest.fixture
def killed(tmp_path):
    """Whether its log began anew before -> the database of a copy of a run in progress."""

    def made(*, anew):
        store = Store.create(tmp_path / "run", lambda *_: "")
        store.commit()
        for version in range(60):
            store.add("merges", {"version": version, **ROW})
            if version % 2:
                store.commit()
            if anew and version == 45:
                with sqlite3.connect(store.folder / "run.sqlite") as other:
                    other.execute("PRAGMA wal_checkpoint(RESTART)")
                other.close()
        shutil.copytree(store.folder, tmp_path / "killed")
        store.close("done")
        return tmp_path / "killed" / "run.sqlite"

    return made


def _current(log):
    """The bytes of the log that belong to its newest generation."""
    size = 24 + 4096
    frames = range(32, len(log) - size + 1, size)
    return 32 + size * sum(log[at + 8 : at + 16] == log[16:24] for at in frames)


@pytest.mark.parametrize("anew", [False, True])
def test_all_damage_of_the_newest_log_is_found(killed, anew):
    """Any bit, the last commit's own head, the log's head; not what is left of an earlier log."""
    database, rng = killed(anew=anew), random.Random(3)  # noqa: S311 - no secrets
    path = database.with_name("run.sqlite-wal")
    log = path.read_bytes()
    upto = _current(log)
    assert (upto < len(log)) == anew
    assert not lost_commits(database)
    last = upto - 24 - 4096
    damaged = [flipped(log, rng.randrange(8 * upto)) for _ in range(12)]
    damaged += [zeroed(log, last, 24), zeroed(log, last + 4, 4), zeroed(log, last + 8, 8), zeroed(log, 0, 32)]
    # The number of the log, and the checksum of its head.
    damaged += [flipped(log, 8 * place) for place in (15, 24, 31)]
    for content in damaged:
        path.write_bytes(content)
        assert lost_commits(database)
    if anew:
        path.write_bytes(flipped(log, 8 * upto + 8 * 100))
        assert not lost_commits(database)
    path.write_bytes(log)
    with read(database.parent) as reader:
        assert len(reader.rows("merges")) == 60


def test_a_log_that_is_cut_off_is_what_a_kill_leaves(killed):
    """The run is as of an earlier commit, and whole."""
    database = killed(anew=False)
    path = database.with_name("run.sqlite-wal")
    path.write_bytes(path.read_bytes()[: -5 * 4120 - 100])
    assert not lost_commits(database)
    with read(database.parent) as reader:
        assert 0 < len(reader.rows("merges")) < 60


def test_changes_that_were_taken_back_are_no_damage(killed):
    """As where a disk became full: their end is in the log, behind what was written over their beginning."""
    database = killed(anew=False)
    path = database.with_name("run.sqlite-wal")
    with contextlib.closing(sqlite3.connect(database)) as again:
        again.execute("PRAGMA cache_size = 5")
        again.executemany(
            "INSERT INTO meta VALUES (?, randomblob(3000))", [(f"row {row}",) for row in range(50)]
        )
        again.rollback()
        again.execute("INSERT INTO meta VALUES ('other', '2')")
        again.commit()
        assert not lost_commits(database)
        log = path.read_bytes()
        # SQLite itself sees the last commit in a copy.
        (path.parent.parent / "copy").mkdir()
        for name in (database, path):
            shutil.copy(name, path.parent.parent / "copy")
    with contextlib.closing(sqlite3.connect(path.parent.parent / "copy" / "run.sqlite")) as copied:
        assert copied.execute("SELECT value FROM meta WHERE key = 'other'").fetchone() == ("2",)
    starts = range(32, len(log), 24 + 4096)
    last = max(at for at in starts if log[at + 4 : at + 8] != bytes(4))
    assert len(log) > last + 3 * 4120, "changes that were taken back are behind the last commit"
    for damaged in (zeroed(log, last + 4, 4), flipped(log, 8 * (last + 30)), flipped(log, 8 * (last + 16))):
        path.write_bytes(damaged)
        assert lost_commits(database)
