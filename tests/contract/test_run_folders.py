"""What is in a run's directory, at every moment of a run and whatever happens to its files."""

import json
import os
import shutil
from pathlib import Path

import pytest
from commands import run_command
from damage import rewritten
from hooks import Hooks
from small import SMALL

import edgefl
from edgefl.analysis.summary import summaries
from edgefl.core.errors import UserError
from edgefl.export.trained import trained
from edgefl.planning.learning import DataAccess
from edgefl.store.folders import runs_in
from edgefl.store.writer import Store

SWEEP = {**SMALL, "sweep": {"seed": [0, 1]}}


class _Each(Hooks):
    """Does something at every call."""

    def __init__(self, act):
        self.act = act

    def began(self, *_):
        self.act()

    merged = evaluated = ended = began


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return edgefl.run(SWEEP, engine="loop", out=tmp_path_factory.mktemp("group") / "group").folder


@pytest.fixture
def group(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "group"))


@pytest.mark.nightly
def test_a_group_can_be_read_at_every_moment(tmp_path, monkeypatch):
    """While runs are made, begin, merge and end: there are the runs so far, or it says there is none yet."""
    group, found = tmp_path / "group", []

    def poll():
        try:
            found.append([run.status for run in summaries([group])])
        except UserError as error:
            found.append(error.what)

    for name in ("write_plan", "close"):
        method = getattr(Store, name)
        monkeypatch.setattr(Store, name, lambda *a, method=method, **b: (poll(), method(*a, **b))[1])
    edgefl.run(SWEEP, engine="loop", out=group, callbacks=_Each(poll))
    # In the order in which they come, once each.
    states = ["['running']", "['done']", "['done', 'running']", "['done', 'done']"]
    assert list(dict.fromkeys(map(str, found))) == [f"{group} holds no run yet", *states]


def test_a_run_of_a_group_that_cannot_be_read_is_named(group, capsys):
    """It is skipped with a note; named alone it is an error; where none is left that is one too."""
    first, second = runs_in(group)
    (first / "run.sqlite").write_bytes(b"not a database" * 400)
    status, out, err = run_command(capsys, "compare", group, "--json")
    assert status == 0
    assert [run["run_dir"] for run in json.loads(out)["runs"]] == [str(second)]
    assert f"note: {first} is left out: run.sqlite cannot be read" in err
    for named in ([first], [group, first]):
        status, out, err = run_command(capsys, "compare", *named)
        assert (status, out) == (2, "")
        assert f"{first.name}: run.sqlite cannot be read" in err
    (second / "run.sqlite").write_bytes(b"")
    assert run_command(capsys, "compare", group)[0] == 2


def test_a_model_that_contradicts_its_run_is_not_exported(group, capsys):
    """Whole files, but other weights or other data than the run had."""
    run = runs_in(group)[0]
    rewritten(run, "UPDATE evaluations SET accuracy = accuracy - 0.04")
    status, out, err = run_command(capsys, "export", run)
    assert (status, out) == (2, "")
    assert "but the run reported" in err
    assert list((run / "export").iterdir()) == []


def test_a_damaged_host_file_does_not_matter(group):
    run = runs_in(group)[0]
    (run / "host.json").write_text('{"data_dir": 5}', encoding="utf-8")
    assert trained(run, DataAccess()).version


def test_a_lost_state_fails_the_run(tmp_path):
    """Somebody deletes what the run needs: no bad input but a failed run, with status 1."""
    out = tmp_path / "run"

    def lose():
        for state in (out / "states").iterdir():
            state.unlink()

    scenario = {**SMALL, "method": "fedclassavg", "server": {"participants": 4, "rounds": 3}}
    engine = {"name": "loop", "state_memory": "1 B"}
    (run,) = edgefl.run(scenario, engine=engine, out=out, callbacks=_Each(lose)).runs
    assert run.status == "failed"
    assert "a client's state is lost" in run.reason


def test_all_files_of_a_run_have_one_mode(tmp_path):
    mask = 0o027
    before = os.umask(mask)
    try:
        edgefl.run({**SMALL, "method": "fedclassavg"}, engine="loop", out=tmp_path / "run")
    finally:
        os.umask(before)
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"run.sqlite", "plan.yaml", "host.json", "SHA256SUMS"}
    assert {oct(path.stat().st_mode & 0o777) for path in files} == {oct(0o666 & ~mask)}


def test_a_mistake_leaves_the_users_folder(tmp_path, monkeypatch):
    """`--out .` in an empty folder, with a data set that has no files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no data"))
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    wrong = {**SMALL, "task": {"dataset": "mnist", "clients": 4}}
    with pytest.raises(UserError, match="mnist"):
        edgefl.run(wrong, out=".", offline=True)
    assert list((tmp_path / "mine").iterdir()) == []
