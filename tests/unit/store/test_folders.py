"""Folders of runs: each is one command's alone, what was not made for it stays, and how runs stand."""

import json
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from threading import Barrier

import pytest
from damage import status_of

import edgefl
from edgefl.core.errors import RunError, UserError
from edgefl.store import reader as reader_module
from edgefl.store.folders import claimed, is_run
from edgefl.store.locks import is_locked, locked
from edgefl.store.reader import read
from edgefl.store.writer import Store


class _Bad(Exception):  # noqa: N818 - no error of the package's
    pass


def _fail(out):
    """What a mistake in a scenario does: it ends the claim before anything is written."""
    with suppress(_Bad), claimed(out, "name"):
        raise _Bad


def _left(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_what_was_made_is_removed(tmp_path, monkeypatch):
    """The directory and those above it; not those that were there, by name, by a link or as current one."""
    (tmp_path / "old").mkdir()
    (tmp_path / "link").symlink_to("old")
    for out in ("old/a/b", "c", "old", "link"):
        _fail(tmp_path / out)
    monkeypatch.chdir(tmp_path / "old")
    _fail(Path())
    assert _left(tmp_path) == ["link", "old"]
    with claimed(tmp_path / "run", "name") as folder:
        (folder / "result").touch()
    assert _left(tmp_path) == ["link", "old", "run", "run/result"]


def _refused(folder, how, words="another command writes into", **options):
    with pytest.raises(UserError, match=words) as caught, how(folder, **options):
        pass
    return caught.value


@pytest.mark.parametrize("made", [False, True])
def test_a_second_command_is_refused(tmp_path, made):
    """While the first one writes, and afterwards; what a killed one left behind means nothing."""
    out = tmp_path / "run"
    if made:
        out.mkdir()
        (out / ".edgefl.lock").touch()
    with claimed(out, "name"):
        error = _refused(out, claimed, name="name")
        assert error.hint == "choose another --out"
        (out / "result").touch()
    _refused(out, claimed, "is not empty", name="name")
    assert _left(tmp_path) == ["run", "run/result"]
    (tmp_path / "link").symlink_to("nowhere")
    _refused(tmp_path / "link", claimed, "cannot create", name="name")
    assert (tmp_path / "link").readlink() == Path("nowhere")


def _at_once(count, claim):
    """So many threads that claim at the same time; their folders, or None where one was refused."""
    barrier = Barrier(count)

    def one(_):
        barrier.wait()
        try:
            with claim() as folder:
                barrier.wait()
                return folder
        except UserError:
            barrier.wait()
            return None

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_only_one_of_many_gets_a_folder_and_new_names_are_never_shared(tmp_path, monkeypatch):
    for number in range(20):
        found = _at_once(5, lambda: claimed(tmp_path / f"run-{number}", "name"))  # noqa: B023 - called in the loop
        assert found.count(None) == 4
    monkeypatch.chdir(tmp_path)
    assert len({*_at_once(30, lambda: claimed(None, "name")), None}) == 31


def test_a_command_that_was_quicker_is_seen(tmp_path, monkeypatch):
    """It wrote its run and took its lock away between our look and our lock."""
    make = os.open

    def slow(path, *how):
        os.close(make(tmp_path / "run.sqlite", os.O_CREAT))
        return make(path, *how)

    monkeypatch.setattr("edgefl.store.locks.os.open", slow)
    with pytest.raises(UserError, match="is not empty"), claimed(tmp_path, "name"):
        pass
    assert _left(tmp_path) == ["run.sqlite"]


# Locks a folder; a worker process that it started and one that it forked live on when it is killed.
_KILLED = """
import os, subprocess, sys, time
from pathlib import Path
from edgefl.store.locks import locked

with locked(Path(sys.argv[1])):
    subprocess.Popen(["cat"], close_fds=False, stdout=subprocess.DEVNULL)
    if os.fork() == 0:
        sys.stdin.read()
        os._exit(0)
    print("locked", flush=True)
    time.sleep(600)
"""


def test_a_killed_command_holds_no_lock(tmp_path):
    """Killed by SIGKILL: free at once, though processes that it started and forked still live."""
    command = [sys.executable, "-c", _KILLED, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"locked\n"
        assert is_locked(tmp_path)
        _refused(tmp_path, locked)
        process.kill()
        process.wait()
        assert (tmp_path / ".edgefl.lock").exists()
        assert not is_locked(tmp_path)
        with locked(tmp_path):
            assert is_locked(tmp_path)
        # Its children end with this pipe, and close theirs.
        process.stdin.close()
        assert process.stdout.read() == b""
    assert list(tmp_path.iterdir()) == []


def test_a_forked_process_gives_nothing_back(tmp_path):
    """Where it leaves the block, too: the lock is its parent's."""
    with ExitStack() as stack:
        stack.enter_context(locked(tmp_path))
        child = os.fork()
        if child == 0:
            stack.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert is_locked(tmp_path)
        _refused(tmp_path, locked)


def test_reading_needs_no_lock_and_links_are_not_followed(tmp_path):
    assert not is_locked(tmp_path)
    assert not is_locked(tmp_path / "missing")
    (tmp_path / ".edgefl.lock").touch(0o400)
    assert not is_locked(tmp_path)
    for name in ("one", "two"):  # which one that was left behind does not lock together
        (tmp_path / name).mkdir()
    with locked(tmp_path / "one"), locked(tmp_path / "two"):
        assert is_locked(tmp_path / "one")
    (tmp_path / ".edgefl.lock").unlink()
    (tmp_path / "other").write_text("mine")
    (tmp_path / ".edgefl.lock").symlink_to("other")
    _refused(tmp_path, locked, "cannot write to")
    assert (tmp_path / "other").read_text() == "mine"
    assert not is_locked(tmp_path)


def _noted(folder, status):
    with closing(sqlite3.connect(folder / "run.sqlite")) as database, database:
        database.execute("UPDATE meta SET value = ? WHERE key = 'status'", [json.dumps(status)])


def test_a_run_that_ends_while_it_is_read_was_not_killed(tmp_path, monkeypatch):
    """The lock is looked at before the row that says "running", never after it."""
    few = {"server.rounds": 1, "sweep": {"seed": [1]}}
    (run,) = edgefl.run("quickstart", overrides=few, engine="null", out=tmp_path / "run").runs
    _noted(run.folder, "running")
    assert status_of(run.folder) == "killed"
    with locked(run.folder):
        assert status_of(run.folder) == "running"

    def ending(folder):
        _noted(folder, "done")
        return False

    monkeypatch.setattr(reader_module, "is_worked_on", ending)
    with read(run.folder, trusted=True) as found:
        assert found.status == "done"


def test_a_run_that_could_not_be_made_leaves_what_others_wrote(tmp_path):
    """Its own files go, and its directory unless something else came into it meanwhile."""
    for name, left in (("one", []), ("two", ["two", "two/notes.txt", "two/versions", "two/versions/mine"])):
        folder = tmp_path / name
        with suppress(_Bad), Store.planned(folder):
            for own in ("plan.yaml", "run.sqlite.1-1.tmp", "states/00000001.safetensors"):
                (folder / own).touch()
            for other in left[1:2] + left[3:]:
                (tmp_path / other).touch()
            raise _Bad
        assert _left(tmp_path) == left


def test_a_run_that_has_not_begun_is_planned(tmp_path):
    """It has its plan and no rows yet; what has neither is no run."""
    with Store.planned(tmp_path / "run"):
        pass
    assert status_of(tmp_path / "run") == "planned"
    assert not is_run(tmp_path / "run")
    Store.open(tmp_path / "run").abandon()
    assert status_of(tmp_path / "run") == "killed"
    with pytest.raises(UserError, match="is not a run directory"):
        status_of(tmp_path)


def test_no_run_is_planned_over_another(tmp_path):
    """It is refused, and the run that is there stays."""
    with Store.planned(tmp_path / "run"):
        pass
    before = _left(tmp_path)
    with pytest.raises(RunError, match="it holds a run"), Store.planned(tmp_path / "run"):
        raise AssertionError("it was planned")
    assert _left(tmp_path) == before


def test_what_could_not_be_planned_leaves_the_users_link(tmp_path):
    """A link that was named in place of a directory is not edgefl's."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with suppress(_Bad), Store.planned(tmp_path / "link"):
        raise _Bad
    assert _left(tmp_path) == ["link", "real"]
