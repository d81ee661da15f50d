"""What is in a run's directory, at every moment of a run and whatever happens to its files."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import run_command
from damage import flipped, rewritten
from hooks import Hooks

import edgefl
from edgefl.analysis.summary import summaries
from edgefl.core.errors import UserError
from edgefl.export.make import as_reported
from edgefl.export.trained import trained
from edgefl.planning.learning import DataAccess
from edgefl.show.onnx import Parity
from edgefl.store import Store, is_run, runs_in
from edgefl.store.sums import unsettle

SCENARIO = {
    "name": "small",
    "task": {"dataset": "digits", "clients": 4},
    "model": {"name": "mlp", "hidden": [8]},
    "method": "fedavg",
    "local": {"epochs": 1, "batch_size": 64},
    "fleet": "home-lab",
    "server": {"participants": 2, "rounds": 2},
}
SWEEP = {**SCENARIO, "sweep": {"seed": [0, 1]}}


class _Each(Hooks):
    """Does something at every call."""

    def __init__(self, act):
        self.act = act

    def began(self, *_):
        self.act()

    merged = evaluated = ended = began


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A group of two runs."""
    return edgefl.run(SWEEP, engine="loop", out=tmp_path_factory.mktemp("group") / "group").folder


@pytest.fixture
def group(whole, tmp_path):
    """A copy of the group."""
    return Path(shutil.copytree(whole, tmp_path / "group"))


def test_a_group_can_be_read_at_every_moment(tmp_path, monkeypatch):
    """While runs are made, begin, merge and end: there are the runs so far, or it says there is none yet."""
    group, found = tmp_path / "group", []

    def poll():
        try:
            found.append([run.status for run in summaries([group])])
        except UserError as error:
            found.append(error.what)

    for name in ("set_meta", "write_plan", "commit", "close"):
        method = getattr(Store, name)

        def polled(self, *args, method=method, **facts):
            poll()
            method(self, *args, **facts)
            poll()

        monkeypatch.setattr(Store, name, polled)
    edgefl.run(SWEEP, engine="loop", out=group, callbacks=_Each(poll))
    # In the order in which they come, once each.
    assert list(dict.fromkeys(map(str, found))) == [
        f"{group} holds no run yet",
        "['running']",
        "['done']",
        "['done', 'running']",
        "['done', 'done']",
    ]


def test_a_run_that_was_killed_while_it_was_made_is_none(tmp_path):
    """The group's other runs can be compared, for ever after."""
    Store.create(tmp_path / "group" / "02-b", lambda *_: "")
    edgefl.run(SCENARIO, engine="null", out=tmp_path / "group" / "01-a")
    assert [path.name for path in runs_in(tmp_path / "group")] == ["01-a"]
    assert not is_run(tmp_path / "group" / "02-b")


def _another_number(folder):
    """One row of ``jobs`` has another number, as a flipped bit would leave it."""
    unsettle(folder)
    with closing(sqlite3.connect(folder / "run.sqlite")) as database:
        database.execute("UPDATE jobs SET received_s = received_s * 2 WHERE job = 1")
        database.commit()


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


def test_damage_of_a_database_is_named(group, capsys):
    """Compare refuses it; of a group it is left out with a note."""
    run, other = runs_in(group)
    _another_number(run)
    status, out, err = run_command(capsys, "compare", run)
    assert (status, out) == (2, "")
    assert "run.sqlite is damaged" in err
    status, out, err = run_command(capsys, "compare", group, "--json")
    assert status == 0
    assert f"note: {run} is left out: run.sqlite is damaged" in err
    assert [one["run_dir"] for one in json.loads(out)["runs"]] == [str(other)]


def test_damaged_versions_are_not_exported(group, capsys):
    """One bit, another run's version, half of it: exit status 2, the file's name, nothing written."""
    run, other = runs_in(group)
    version = trained(run, DataAccess()).version
    file = run / "versions" / f"{version:06d}.safetensors"
    content = file.read_bytes()
    alien = (other / "versions" / file.name).read_bytes()
    for damaged in (flipped(content, 8 * len(content) - 9), alien, b"", content[:-8]):
        file.write_bytes(damaged)
        status, out, err = run_command(capsys, "export", run)
        assert (status, out) == (2, "")
        assert f"{file.name} is damaged" in err
    assert not (run / "export").exists()


@pytest.mark.parametrize(
    ("samples", "reported", "refused"),
    [
        (359, 0.9, False),
        (359, 0.9 - 1.5 / 359, False),
        (359, 0.88, True),
        (10_000, 0.904, False),
        (10_000, 0.91, True),
        (10, 0.8, False),
    ],
)
def test_an_accuracy_beyond_rounding_is_refused(samples, reported, refused):
    """On another processor a few samples may go the other way: half a percent, and always two samples."""
    parity = Parity(samples, 0.0, True, 0.0, 0.0, 1.0, 0.9, 0.9, True)
    source = SimpleNamespace(reported={None: reported}, folder="runs/x")
    candidate = SimpleNamespace(source=source, client=None, parity=parity)
    if refused:
        with pytest.raises(UserError, match=f"is 90.00% here, but the run reported {reported:.2%}"):
            as_reported(candidate)
    else:
        assert as_reported(candidate) is candidate


def test_a_model_that_contradicts_its_run_is_not_exported(group, capsys):
    """Whole files, but other weights or other data than the run had."""
    run = runs_in(group)[0]
    rewritten(run, "UPDATE evaluations SET accuracy = accuracy - 0.04")
    status, out, err = run_command(capsys, "export", run)
    assert (status, out) == (2, "")
    assert "but the run reported" in err
    assert list((run / "export").iterdir()) == []


@pytest.mark.parametrize("host", [{"data_dir": 5}, {"data_dir": ["x"]}, {"data_dir": {}}, []])
def test_a_damaged_host_file_does_not_matter(group, host):
    """Nothing of a result is in it."""
    run = runs_in(group)[0]
    (run / "host.json").write_text(json.dumps(host), encoding="utf-8")
    assert trained(run, DataAccess()).version


def test_a_host_file_that_cannot_be_written_does_not_matter(tmp_path):
    """A folder of its name stands for whatever keeps it from being written: the sweep ends as it would."""
    group = tmp_path / "group"

    def block():
        for run in group.iterdir():
            if run.is_dir():
                (run / "host.json").mkdir(exist_ok=True)

    result = edgefl.run(SWEEP, engine="null", out=group, callbacks=_Each(block))
    assert [(run.status, run.reason) for run in result.runs] == [("done", "")] * 2
    assert [run.status for run in summaries([group])] == ["done", "done"]


def test_a_lost_state_fails_the_run(tmp_path):
    """Somebody deletes what the run needs: no bad input but a failed run, with status 1."""
    out = tmp_path / "run"

    def lose():
        for state in (out / "states").iterdir():
            state.unlink()

    scenario = {**SCENARIO, "method": "fedclassavg", "server": {"participants": 4, "rounds": 3}}
    engine = {"name": "loop", "state_memory": "1 B"}
    (run,) = edgefl.run(scenario, engine=engine, out=out, callbacks=_Each(lose)).runs
    assert run.status == "failed"
    assert "a client's state is lost" in run.reason


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_all_files_of_a_run_have_one_mode(tmp_path, mask):
    """That of any new file of the user's."""
    before = os.umask(mask)
    try:
        edgefl.run({**SCENARIO, "method": "fedclassavg"}, engine="loop", out=tmp_path / "run")
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
    wrong = {**SCENARIO, "task": {"dataset": "mnist", "clients": 4}}
    with pytest.raises(UserError, match="mnist"):
        edgefl.run(wrong, out=".", offline=True)
    assert list((tmp_path / "mine").iterdir()) == []
