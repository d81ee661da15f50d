"""How a run stands: what it says, and whether a command still holds it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hooks import Hooks

import edgefl
from edgefl.core.errors import UserError
from edgefl.protocol import write_tree
from edgefl.store import Store, is_locked, is_planned, is_run, read, status_of

TINY = {"server.rounds": 1, "sweep": {"seed": [1]}}


class _Look(Hooks):
    """Notes how each run stands while it is the one in progress; copies it as a kill would leave it."""

    def __init__(self, copies, *, stop=False):
        self.copies, self.stop, self.seen = copies, stop, []

    def began(self, run):
        self.seen.append((status_of(run.folder), is_locked(run.folder)))
        shutil.copytree(run.folder, self.copies / run.folder.name)
        if self.stop:
            raise KeyboardInterrupt


def _run(folder, overrides, look=None):
    return edgefl.run("quickstart", overrides=overrides, engine="null", out=folder, callbacks=look)


def test_a_run_in_progress_is_running_and_a_copy_of_it_was_killed(tmp_path):
    look = _Look(tmp_path)
    result = _run(tmp_path / "group", {**TINY, "sweep": {"seed": [1, 2]}}, look)
    assert look.seen == [("running", True)] * 2
    folders = [run.folder for run in result.runs]
    assert [status_of(folder) for folder in folders] == ["done", "done"]
    assert [status_of(tmp_path / folder.name) for folder in folders] == ["killed", "killed"]
    assert not list((tmp_path / "group").rglob(".edgefl.lock"))
    (killed,) = edgefl.open(tmp_path / folders[0].name).runs
    assert (killed.status, killed.summary().status) == ("killed", "killed")
    assert edgefl.open(tmp_path / folders[0].name).failed == (killed,)


def test_a_single_run_holds_the_lock_of_its_folder(tmp_path):
    look = _Look(tmp_path / "copies", stop=True)
    with suppress(KeyboardInterrupt):
        _run(tmp_path / "run", TINY, look)
    assert look.seen == [("running", True)]
    assert status_of(tmp_path / "run") == "interrupted"


def test_a_run_that_ends_while_it_is_read_was_not_killed(tmp_path, monkeypatch):
    """The lock is looked at before the row that says "running", never after it."""
    from edgefl.store import reader as module

    (run,) = _run(tmp_path / "run", TINY).runs
    _noted(run.folder, "running")

    def ending(folder):
        _noted(folder, "done")
        return False

    monkeypatch.setattr(module, "is_locked", ending)
    with read(run.folder, trusted=True) as found:
        assert found.status == "done"


def _noted(folder: Path, status: str) -> None:
    with closing(sqlite3.connect(folder / "run.sqlite")) as database, database:
        database.execute("UPDATE meta SET value = ? WHERE key = 'status'", [json.dumps(status)])


def test_a_run_that_has_not_begun_is_planned(tmp_path):
    Store.create(tmp_path / "run", write_tree, planned=True).commit()
    assert status_of(tmp_path / "run") == "planned"
    assert is_planned(tmp_path / "run")
    assert not is_run(tmp_path / "run")
    Store.open(tmp_path / "run", write_tree).abandon()
    assert status_of(tmp_path / "run") == "killed"
    with pytest.raises(UserError, match="is not a run directory"):
        status_of(tmp_path)
