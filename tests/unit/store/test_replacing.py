"""A run's plan is replaced: whenever it is interrupted, the run has one of the two plans and is whole."""

from __future__ import annotations

import hashlib
import shutil
from itertools import cycle

import pytest

from edgefl.core.errors import RunError, UserError
from edgefl.core.yamls import dump
from edgefl.protocol import write_tree
from edgefl.store import Store, read, replace_plan, verify
from edgefl.store import replacing as replacing_module

OLD, NEW = ({"scenario": {"server": {"until": {"rounds": rounds}}}} for rounds in (2, 20))


def sha256(resolved):
    """Of a plan's file."""
    return hashlib.sha256(dump(resolved).encode()).hexdigest()


@pytest.fixture
def store(tmp_path):
    """A run with the old plan."""
    made = Store.create(tmp_path / "run", write_tree)
    (made.folder / "plan.yaml").write_text(dump(OLD), encoding="utf-8")
    made.set_meta({"run_id": "old", "plan_sha256": sha256(OLD)})
    made.commit()
    yield made
    made.abandon()


@pytest.fixture
def moments(store, tmp_path, monkeypatch):
    """Copies of the run's directory, as a kill would leave it after each step."""
    copies = [shutil.copytree(store.folder, tmp_path / "moment 0")]

    def copying(owner, name):
        step = getattr(owner, name)

        def stepping(*args, **named):
            step(*args, **named)
            copies.append(shutil.copytree(store.folder, tmp_path / f"moment {len(copies)}"))

        monkeypatch.setattr(owner, name, stepping)

    for owner, name in ((Store, "set_meta"), (Store, "commit"), (replacing_module, "atomically")):
        copying(owner, name)
    replace_plan(store, NEW, {"run_id": "new"})
    monkeypatch.undo()
    return copies


def test_the_new_plan_is_there_at_the_end(store):
    """With its own SHA-256 alone, and the facts that follow from it."""
    replace_plan(store, NEW, {"run_id": "new"})
    store.close("done")
    with read(store.folder) as reader:
        assert reader.resolved() == NEW
        assert (reader.meta["plan_sha256"], reader.meta["run_id"]) == (sha256(NEW), "new")
    assert verify(store.folder) == []


def test_a_kill_at_any_moment_leaves_a_whole_run(moments):
    """The plan is the old one, then the new one, and every file is as its run says."""
    found = []
    for folder in moments:
        assert verify(folder) == []
        with read(folder) as reader:
            found.append((reader.resolved() == NEW, isinstance(reader.meta["plan_sha256"], list)))
            assert reader.resolved() in (OLD, NEW)
    # Old, either, either with the new file, new.
    assert list(dict.fromkeys(found)) == [(False, False), (False, True), (True, True), (True, False)]
    assert found == sorted(found, key=list(dict.fromkeys(found)).index)


def test_what_was_interrupted_can_be_done_again(moments):
    """From every moment, with the same plan or another one."""
    third = {"scenario": {}}
    for folder, resolved in zip(moments, cycle([NEW, third]), strict=False):
        again = Store.open(folder, write_tree)
        replace_plan(again, resolved, {"run_id": "again"})
        again.close("done")
        with read(folder) as reader:
            assert reader.resolved() == resolved
            assert (reader.meta["plan_sha256"], reader.meta["run_id"]) == (sha256(resolved), "again")


def test_a_damaged_plan_is_found_at_any_moment(moments):
    """While either of two is right, a third one is not."""
    for folder in moments:
        text = (folder / "plan.yaml").read_text(encoding="utf-8")
        (folder / "plan.yaml").write_text(text.replace("2", "3"), encoding="utf-8")
        assert any("plan.yaml is damaged" in line for line in verify(folder))
        with read(folder) as reader, pytest.raises(UserError, match=r"plan\.yaml is damaged"):
            reader.resolved()


def test_a_plan_that_cannot_be_written_leaves_the_old_one(store, monkeypatch):
    """A full disk is told, and the run is whole."""

    def full(*_):
        raise RunError("cannot write plan.yaml: No space left on device")

    monkeypatch.setattr(replacing_module, "atomically", full)
    with pytest.raises(RunError, match="No space left"):
        replace_plan(store, NEW, {"run_id": "new"})
    assert verify(store.folder) == []
    with read(store.folder) as reader:
        assert (reader.resolved(), reader.meta["run_id"]) == (OLD, "old")
