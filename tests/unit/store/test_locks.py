"""Locks of folders: one command at a time, and none that a dead one holds."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier

import pytest

from edgefl.core.errors import UserError
from edgefl.store import is_locked, locked, locked_run

IN_USE = "another command writes into"

# Locks a folder; a worker process that it started and one that it forked live on when it is killed.
_KILLED = """
import os, subprocess, sys, time
from pathlib import Path
from edgefl.store import locked

with locked(Path(sys.argv[1])):
    subprocess.Popen(["cat"], close_fds=False, stdout=subprocess.DEVNULL)
    if os.fork() == 0:
        sys.stdin.read()
        os._exit(0)
    print("locked", flush=True)
    time.sleep(600)
"""


def _refused(folder, how=locked, **options):
    with pytest.raises(UserError, match=IN_USE) as caught, how(folder, **options):
        pass
    return caught.value


def test_a_killed_command_holds_no_lock(tmp_path):
    """Killed by SIGKILL: free at once, though processes that it started and forked still live."""
    command = [sys.executable, "-c", _KILLED, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"locked\n"
        assert is_locked(tmp_path)
        _refused(tmp_path)
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
        _refused(tmp_path)


def test_a_run_is_not_for_two_nor_for_one_beside_its_group(tmp_path):
    (tmp_path / "group.json").touch()
    runs = [tmp_path / name for name in ("01-a", "02-b")]
    for run in runs:
        run.mkdir()
    with locked(tmp_path):
        error = _refused(runs[1], locked_run, hint="wait")
        assert (error.where, error.hint) == (str(tmp_path), "wait")
    with locked_run(runs[0]), locked_run(runs[1]):
        _refused(runs[0], locked_run)
        _refused(tmp_path)
    with locked_run(runs[0]):
        pass
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["01-a", "02-b", "group.json"]


def test_a_run_beside_others_locks_nothing_else(tmp_path):
    (tmp_path / "run").mkdir()
    with locked_run(tmp_path / "run"):
        assert [path.name for path in tmp_path.iterdir()] == ["run"]
        with locked(tmp_path):
            pass


def test_only_one_of_many_has_it(tmp_path):
    """Threads that lock and unlock as quickly as they can are never two at once, whoever removes the file."""
    inside, most, barrier = [], [], Barrier(8)

    def one(number):
        barrier.wait()
        for _ in range(200):
            try:
                with locked(tmp_path):
                    inside.append(number)
                    most.append(len(inside))
                    inside.remove(number)
            except UserError:
                continue

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(8)))
    assert set(most) == {1}
    assert list(tmp_path.iterdir()) == []


def test_reading_needs_no_lock(tmp_path):
    assert not is_locked(tmp_path)
    assert not is_locked(tmp_path / "missing")
    (tmp_path / ".edgefl.lock").touch()
    (tmp_path / ".edgefl.lock").chmod(0o400)
    assert not is_locked(tmp_path)


def test_links_are_not_followed(tmp_path):
    (tmp_path / "other").write_text("mine")
    (tmp_path / ".edgefl.lock").symlink_to("other")
    with pytest.raises(UserError, match="cannot write to"), locked(tmp_path):
        pass
    assert (tmp_path / "other").read_text() == "mine"
    assert not is_locked(tmp_path)
