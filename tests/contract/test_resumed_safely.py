"""What resuming must never do: lose what was committed, or change a run that it refuses."""

import os
from pathlib import Path

import pytest
from damage import status_of
from interrupted import POLICIES, copied, scenario
from small import Stop

import edgefl
from edgefl.core.errors import UserError
from edgefl.store import writer
from edgefl.store.folders import FILES
from edgefl.store.locks import LOCK
from edgefl.store.reader import is_settled


def _interrupted(folder, engine):
    with pytest.raises(KeyboardInterrupt):
        edgefl.run(scenario(), engine=engine, out=folder, callbacks=Stop(3))


def _content(folder):
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != LOCK)
    return {path.relative_to(folder): path.read_bytes() for path in files}


@pytest.mark.parametrize(("engine", "other"), [("loop", "null"), ("null", "loop")])
def test_training_is_neither_dropped_nor_begun(tmp_path, engine, other):
    """An engine that trains cannot take over from one that does not, nor the other way round."""
    folder = tmp_path / "run"
    _interrupted(folder, engine)
    before = _content(folder)
    with pytest.raises(UserError, match="training, and can only go on like that"):
        edgefl.resume(folder, engine=other)
    assert _content(folder) == before


def test_a_refused_setting_begins_no_run(tmp_path):
    with copied(tmp_path / "whole", tmp_path / "copies", 1000) as copies:
        edgefl.run(scenario({"sweep": {"seed": [0, 1]}, "server": {"rounds": 1}}), out=tmp_path / "whole")
    group = next(copy for copy in copies.kept if (copy / "group.json").exists())
    before = _content(group)
    with pytest.raises(UserError):
        edgefl.resume(group, overrides={"engine.workers": 0})
    assert status_of(group / "02-seed-1") == "planned"
    assert _content(group) == before


def test_a_run_that_is_refused_when_it_goes_on_is_as_it_was(tmp_path, monkeypatch):
    """One that is done is whole, and needs no look at its rows; nothing is left in its directory."""
    (run,) = edgefl.run(scenario(), engine="loop", out=tmp_path / "run").runs
    monkeypatch.setattr("edgefl.runs.past.EventDigest.text", lambda _: "another")
    names = sorted(path.name for path in run.folder.iterdir())
    with pytest.raises(UserError, match="gives other events"):
        edgefl.resume(run.folder, overrides={"server.rounds": 7})
    assert sorted(path.name for path in run.folder.iterdir()) == names
    assert is_settled(run.folder)


@pytest.mark.nightly
def test_no_file_goes_before_the_rows_that_do_not_name_it_are_on_the_disk(tmp_path, monkeypatch):
    """A power cut at any moment leaves rows whose files are there: of a run that is resumed and raised."""
    folder, waiting, deleted = tmp_path / "run", set(), []
    commit, unlink, fsync = writer.Store.commit, Path.unlink, os.fsync

    def committed(store):
        commit(store)
        waiting.update(path.stat().st_ino for path in (folder, folder / "run.sqlite-wal") if path.exists())

    def synced(file):
        waiting.discard(os.fstat(file).st_ino)
        fsync(file)

    def removed(path, **how):
        if folder in path.parents and path.parent.name in FILES and path.exists():
            deleted.append((path.name, len(waiting)))
        unlink(path, **how)

    monkeypatch.setattr(writer.Store, "commit", committed)
    monkeypatch.setattr(Path, "unlink", removed)
    monkeypatch.setattr(os, "fsync", synced)
    with pytest.raises(KeyboardInterrupt):
        edgefl.run(scenario({"method": "fedclassavg"}), engine="loop", out=folder, callbacks=Stop(3))
    edgefl.resume(folder)
    edgefl.resume(folder, overrides={"server.rounds": 7})
    assert len(deleted) > 10
    assert [(name, missing) for name, missing in deleted if missing] == []


def test_what_a_checkpoint_names_is_on_the_disk_before_it(tmp_path, monkeypatch):
    """Files of versions, states and outcomes, also of states that were written between two checkpoints."""
    folder, synced, named = tmp_path / "run", set(), []
    commit, fsync = writer.Store.commit, os.fsync

    def committed(store):
        for table in FILES:
            for (name,) in store._db.execute(f"SELECT file FROM {table}"):  # noqa: S608, SLF001 - its rows
                named.append((name, (folder / name).stat().st_ino in synced))
        commit(store)

    def noted(file):
        synced.add(os.fstat(file).st_ino)
        fsync(file)

    monkeypatch.setattr(writer.Store, "commit", committed)
    monkeypatch.setattr(os, "fsync", noted)
    settings = scenario(
        {"method": "fedclassavg", "server": {"policy": POLICIES["fedbuff"], "participants": 5}}
    )
    (run,) = edgefl.run(settings, engine={"name": "vmapped", "state_memory": "1 B"}, out=folder).runs
    assert run.status == "done", run.reason
    assert {name.partition("/")[0] for name, _ in named} == set(FILES)
    assert [name for name, there in named if not there] == []
