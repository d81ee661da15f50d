"""``--seeds``: every run is repeated, all of a seed before those of the next."""

from __future__ import annotations

import json

import pytest
from commands import run_command
from compared import RICH

import edgefl
from edgefl.core.errors import UserError
from edgefl.runs.group import drafts

FEW = ["--set", "server.rounds=2"]
SWEPT = ["sweep=null", "sweep.method=[fedavg, fedclassavg]"]


def planned(*settings, seeds):
    """The methods and seeds of the runs, in their order."""
    found = drafts("quickstart", settings, seeds)
    return [(one.scenario.method.name, one.scenario.seed) for one in found]


def test_methods_are_repeated_seed_by_seed():
    """So that a run that is stopped has whole pairs; seeds count up from the scenario's, or the given one."""
    assert planned(*SWEPT, "seed=3", seeds=2) == [
        ("fedavg", 3),
        ("fedclassavg", 3),
        ("fedavg", 4),
        ("fedclassavg", 4),
    ]
    assert [seed for _, seed in planned("sweep=null", seeds=3)] == [7, 8, 9]
    assert planned("sweep=null", seeds=1) == [("fedavg", 7)]
    assert [seed for _, seed in planned("sweep=null", "sweep.seed=[5, 6]", "seed=1", seeds=2)] == [1, 2]
    bare = {"name": "bare", **{key: value for key, value in RICH.items() if key != "name"}}
    assert [one.scenario.seed for one in drafts(bare, (), 2)] == [0, 1]


def test_names_say_the_seed():
    """Behind what the sweep says; pairs of settings keep their names."""
    names = [one.scenario.name for one in drafts("quickstart", ["sweep={runs: [{name: a}, {name: b}]}"], 2)]
    assert names == ["a, seed 7", "b, seed 7", "a, seed 8", "b, seed 8"]


@pytest.mark.parametrize("seeds", [0, -1, 10_001, 2.0, "2", True, 10**30])
def test_the_number_of_seeds_is_a_whole_one(seeds):
    """From 1 to as many runs as a sweep may have."""
    with pytest.raises(UserError, match=r"seeds must be a whole number (from 1 to 10,000|or None)"):
        edgefl.run("quickstart", seeds=seeds)


def test_seeds_win_over_the_sweeps():
    """As everything that is set."""
    found = drafts("quickstart", ["sweep={seed: [7, 8, 9]}", "seed=3"], 2)
    assert [draft.scenario.seed for draft in found] == [3, 4]


@pytest.mark.parametrize(
    ("settings", "what", "hint"),
    [
        (["seed=often"], "valid integer", ""),
        (["seed=9223372036854775807"], "", ""),
        (["sweep.server.rounds=[1, 2, 3]"], "a sweep of 90,000 runs", ""),
    ],
)
def test_seeds_that_are_set_otherwise_are_refused(settings, what, hint):
    """Before anything is planned, with what to do."""
    with pytest.raises(UserError) as refused:
        drafts("quickstart", settings, 10_000 if "90,000" in what else 2)
    assert what in refused.value.what
    assert hint in refused.value.hint


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["run", "quickstart", "--seeds", "0"], "--seeds"),
        (["run", "quickstart", "--seeds", "-2"], "--seeds"),
        (["check", "quickstart", "--seeds", "two"], "--seeds"),
        (["check", "quickstart", "--seeds", "1.5"], "--seeds"),
        (["check", "--seeds", "2"], "--seeds needs a scenario"),
        (["check", "--method", "fedavg", "--seeds", "2"], "--seeds"),
    ],
)
def test_the_command_line_refuses_what_cannot_be(command, message, capsys, tmp_path, monkeypatch):
    """With exit status 2; nothing is saved."""
    monkeypatch.chdir(tmp_path)
    status, _, error = run_command(capsys, *command)
    assert (status, message in error) == (2, True)
    assert not list(tmp_path.iterdir())


def test_check_and_run_have_the_same_runs(capsys, tmp_path):
    """A run's document has its averages and pairs; a dry run's, its runs."""
    common = [*FEW, "--seeds", "2", "--seed", "3", "--json"]
    status, out, _ = run_command(capsys, "check", "quickstart", *common)
    assert status == 0
    names = [one["name"] for one in json.loads(out)["runs"]]
    assert names[:4] == ["fedavg, seed 3", "spherefed, seed 3", "fedclassavg, seed 3", "fedavg, seed 4"]
    target = tmp_path / "runs"
    status, out, _ = run_command(capsys, "run", "quickstart", *common, "--engine", "null", "--out", target)
    found = json.loads(out)
    assert status == 0
    assert [one["name"] for one in found["runs"]] == names
    assert [(one["name"], one["seeds"]) for one in found["averages"]] == [
        ("fedavg", [3, 4]),
        ("spherefed", [3, 4]),
        ("fedclassavg", [3, 4]),
    ]
    assert [(one["name"], one["against"]) for one in found["pairs"]] == [
        ("spherefed", "fedavg"),
        ("fedclassavg", "fedavg"),
    ]
    status, out, _ = run_command(capsys, "compare", target, "--all")
    assert status == 0
    assert "against fedavg" in out
