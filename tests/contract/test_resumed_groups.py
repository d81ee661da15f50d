"""Groups that are resumed, and what else works on a run meanwhile."""

import shutil
import sqlite3

import pytest
from commands import run_command
from damage import status_of
from interrupted import copied, scenario
from resumed import same_runs

import edgefl
from edgefl.core.errors import RunError, UserError
from edgefl.store import writer

SWEEP = scenario({"sweep": {"seed": [0, 1, 2]}, "server": {"rounds": 2}})


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    folder = tmp_path_factory.mktemp("groups")
    with copied(folder / "whole", folder / "copies", 5, "groups") as copies:
        result = edgefl.run(SWEEP, engine="loop", out=folder / "whole")
    assert [run.status for run in result.runs] == ["done"] * 3
    return result, sorted(copy for copy in copies.kept if (copy / "group.json").exists())


def _files(folder):
    return {
        path.relative_to(folder): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_group_goes_on_where_it_was(groups, tmp_path):
    """What is done is not touched, what began goes on, and what was planned begins."""
    whole, copies = groups
    seen = set()
    for place, kept in enumerate(copies):
        copy = tmp_path / f"{place}"
        shutil.copytree(kept, copy)
        settled = [file.parent for file in copy.glob("*/SHA256SUMS")]
        done = {folder: _files(folder) for folder in settled if status_of(folder) == "done"}
        seen.add(len(done))
        result = edgefl.resume(copy)
        assert [run.status for run in result.runs] == ["done"] * 3
        assert {folder: _files(folder) for folder in done} == done
        for one, other in zip(whole.runs, result.runs, strict=True):
            assert one.folder.name == other.folder.name
            same_runs(one.folder, other.folder)
    assert seen >= {0, 1}


def test_a_group_that_is_done_stays_as_it_is(groups):
    whole, _ = groups
    before = _files(whole.folder)
    for what in (whole.folder, str(whole.folder), whole):
        assert [run.status for run in edgefl.resume(what).runs] == ["done"] * 3
    assert [run.status for run in edgefl.resume(whole.runs[0]).runs] == ["done"]
    assert _files(whole.folder) == before


def test_a_wrong_setting_is_refused_where_all_is_done(groups):
    whole, _ = groups
    for setting, why in (("engine=nonsense", "unknown engine"), ("local.epochs=2", "'local.epochs' cannot")):
        with pytest.raises(UserError, match=why):
            edgefl.resume(whole.folder, overrides=[setting])


def test_a_run_that_somebody_removed_is_told(groups, tmp_path, capsys):
    """The others go on; a group of which nothing is left is refused."""
    whole, _ = groups
    group = tmp_path / "group"
    shutil.copytree(whole.folder, group)
    shutil.rmtree(group / "02-seed-1")
    status, _, err = run_command(capsys, "run", "--resume", group)
    assert (status, f"note: left out: 02-seed-1, no longer in {group}" in err) == (0, True)
    assert "note: already done: seed 0, seed 2" in err
    for run in group.glob("0*"):
        shutil.rmtree(run)
    with pytest.raises(UserError, match="has none of its runs any more"):
        edgefl.resume(group)


def test_commands_to_type_next_can_be_pasted(groups, tmp_path, capsys):
    whole, copies = groups
    group = tmp_path / "my runs" / "group"
    shutil.copytree(copies[0], group)
    _, out, _ = run_command(capsys, "runs", group)
    assert f"next: edgefl run --resume '{group}'" in out
    shutil.rmtree(group)
    shutil.copytree(whole.folder, group)
    _, out, _ = run_command(capsys, "run", "--resume", group)
    assert f"next: edgefl report '{group}'" in out


def _damaged(whole, group, name):
    shutil.copytree(whole, group)
    (group / name).write_bytes((group / name).read_bytes()[:50])
    return group


@pytest.mark.nightly
def test_a_damaged_plan_of_a_group_keeps_no_other_run(groups, tmp_path):
    """Its run is told to be unreadable, with one message; the others go on."""
    whole, copies = groups
    group = _damaged(copies[0], tmp_path / "group", "02-seed-1/run.sqlite")
    runs = edgefl.resume(group).runs
    assert [run.status for run in runs] == ["done", "unreadable", "done"]
    assert len(runs[1].reason) < 700
    assert "damaged" in runs[1].reason or "cannot be read" in runs[1].reason
    for place in (0, 2):
        same_runs(whole.runs[place].folder, runs[place].folder)


def test_runs_of_a_damaged_group_are_resumed_one_by_one(groups, tmp_path):
    """Where the list of runs is damaged, which is said in one message."""
    whole, copies = groups
    group = _damaged(copies[0], tmp_path / "group", "group.json")
    with pytest.raises(UserError, match=r"group\.json is damaged"):
        edgefl.resume(group)
    for run in whole.runs:
        edgefl.resume(group / run.folder.name)
        same_runs(run.folder, group / run.folder.name)


def test_a_group_is_planned_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    """Where the disk is full before the first run begins, no run is missing from what can be resumed."""

    def committed(store):
        if store.folder.name == "02-seed-1":
            raise sqlite3.OperationalError("database or disk is full")
        commit(store)

    commit = writer.Store.commit
    monkeypatch.setattr(writer.Store, "commit", committed)
    with pytest.raises(RunError, match="disk is full"):
        edgefl.run(SWEEP, engine="null", out=tmp_path / "group")
    assert not (tmp_path / "group").exists()
