"""`edgefl explain` and `RunResult.explain`, on folders of runs as they come."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from importlib import import_module

import pytest
from commands import run_command
from hooks import Hooks

import edgefl
from edgefl.analysis.explain.again import CHANGES, OF_CLIENTS
from edgefl.analysis.explain.explain import TOP
from edgefl.core.documents import document

ROUNDS = 3


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    """Runs that trained nothing: FedAvg, and FedAvg on a server that does not wait."""
    folder = tmp_path_factory.mktemp("runs") / "group"
    sweep = {"server.policy": ["sync", {"name": "fedasync"}]}
    edgefl.run(
        "quickstart",
        overrides={"method": "fedavg", "sweep": sweep, "server.rounds": ROUNDS},
        engine="null",
        out=folder,
    )
    return folder


@pytest.fixture
def run(group):
    """The first of them."""
    return edgefl.open(group).runs[0]


def test_the_first_line_is_the_answer(capsys, run):
    """How long the rounds took, in what phase, and on which devices; the tables are below it."""
    status, out, err = run_command(capsys, "explain", run.folder)
    assert (status, err) == (0, "")
    first = out.splitlines()[0]
    assert first.startswith(f"{run.name}: {ROUNDS} rounds took ")
    assert "of it compute (kernel launches)" in first
    for word in ("critical path", "all rounds would save with", "median device", "longest: round"):
        assert word in out


def test_a_round_is_explained(capsys, run):
    """Its path, part by part."""
    status, out, _ = run_command(capsys, "explain", run.folder, "--round", "1")
    assert status == 0
    assert out.splitlines()[0].startswith(f"{run.name}: round 1 took ")
    for word in ("download", "compute", "upload", "critical path", "bound by"):
        assert word in out


def test_json_is_what_python_has(capsys, run):
    """Of the run and of a round."""
    _, out, _ = run_command(capsys, "explain", run.folder, "--json")
    assert json.loads(out) == {"runs": [document(run.explain())]}
    _, out, _ = run_command(capsys, "explain", run.folder, "--round", "0", "--json")
    assert json.loads(out) == {"runs": [document(run.explain(0))]}


def test_runs_of_a_group_are_explained_one_after_another(capsys, group):
    """With savings for all and by client; the asynchronous one's are of another run, to as many merges."""
    status, out, _ = run_command(capsys, "explain", group)
    assert status == 0
    assert out.count("rounds took") == 2
    assert out.count("for all clients") == 2
    assert out.count("for client ") >= 4
    assert out.count("to as many merges: other times make another run (policy fedasync)") == 1


def test_a_run_that_is_too_long_has_no_savings(capsys, run, monkeypatch):
    """And says so in a line; the path is there."""
    module = import_module("edgefl.analysis.explain.explain")
    held_up = min(TOP, len(run.explain().clients))
    jobs, runs = len(run.table("jobs")), 1 + len(CHANGES) + held_up * len(OF_CLIENTS)
    monkeypatch.setattr(module, "MOST_AGAIN", jobs * runs)
    assert run.explain().savings is not None
    monkeypatch.setattr(module, "MOST_AGAIN", jobs * runs - 1)
    found = run.explain()
    assert (found.savings, found.unsaved) == (None, "size")
    assert {one.savings for one in found.clients} == {None}
    _, out, _ = run_command(capsys, "explain", run.folder)
    assert "savings are unknown: the run is too long to run its clock for each change" in out
    assert "critical path" in out


def test_a_round_that_is_not_there_is_refused(capsys, run):
    """With the rounds that are."""
    status, out, err = run_command(capsys, "explain", run.folder, "--round", "9")
    assert (status, out) == (2, "")
    assert f"{run.name} has no round 9" in err
    assert f"its rounds are 0 to {ROUNDS - 1}" in err
    with pytest.raises(edgefl.UserError, match="has no round -1"):
        run.explain(-1)


class Stops(Hooks):
    """Interrupts a run after a round."""

    def __init__(self, after):
        self._after = after

    def merged(self, so_far):
        """See ``Callbacks``."""
        if so_far.rounds > self._after:
            raise KeyboardInterrupt


def interrupted(folder, after):
    """A run that was interrupted after so many rounds."""
    with pytest.raises(KeyboardInterrupt):
        edgefl.run(
            "quickstart",
            overrides={"sweep": None, "method": "fedavg", "server.rounds": 5},
            engine="null",
            out=folder,
            callbacks=Stops(after),
        )
    return edgefl.open(folder).runs[0]


def test_an_interrupted_run_is_explained_as_far_as_it_came(tmp_path):
    """All rounds that were merged."""
    found = interrupted(tmp_path / "run", 1)
    assert found.status == "interrupted"
    assert len(found.explain().rounds) == len(found.table("merges")) > 0


def test_a_run_without_a_merge_has_nothing_to_explain(capsys, tmp_path):
    """One message, and status 2."""
    done = edgefl.run(
        "quickstart",
        overrides={"sweep": None, "server": {"until": {"time": "1 ms"}}},
        engine="null",
        out=tmp_path / "run",
    ).runs[0]
    assert done.table("merges") == []
    status, _, err = run_command(capsys, "explain", done.folder)
    assert status == 2
    assert "nothing was merged yet" in err


@pytest.mark.parametrize("table", ["jobs", "merges", "traces"])
def test_a_damaged_run_is_not_explained(capsys, tmp_path, table):
    """One message, and status 2."""
    done = edgefl.run(
        "quickstart",
        overrides={"sweep": None, "method": "fedavg", "server.rounds": 2},
        engine="null",
        out=tmp_path / "run",
    ).runs[0]
    with closing(sqlite3.connect(done.folder / "run.sqlite")) as database:
        last = f"(SELECT MAX(rowid) FROM {table})"  # noqa: S608 - our own names
        database.execute(f"DELETE FROM {table} WHERE rowid = {last}")  # noqa: S608
        database.commit()
    status, out, err = run_command(capsys, "explain", done.folder)
    assert (status, out) == (2, "")
    assert "run.sqlite is damaged" in err
