"""``--seeds``: every run is repeated, all of a seed before those of the next."""

import pytest
from commands import run_command
from compared import RICH

import edgefl
from edgefl.core.errors import UserError
from edgefl.runs.group import drafts

SWEPT = ["sweep=null", "sweep.method=[fedavg, fedclassavg]"]


def planned(*settings, seeds):
    found = drafts("quickstart", settings, seeds)
    return [(one.scenario.method.name, one.scenario.seed) for one in found]


def test_methods_are_repeated_seed_by_seed():
    """So that a run that is stopped has whole pairs; seeds count up from the scenario's, or the given one."""
    methods = ("fedavg", "fedclassavg")
    assert planned(*SWEPT, "seed=3", seeds=2) == [(name, seed) for seed in (3, 4) for name in methods]
    assert [seed for _, seed in planned("sweep=null", seeds=3)] == [7, 8, 9]
    assert planned("sweep=null", seeds=1) == [("fedavg", 7)]
    assert [seed for _, seed in planned("sweep=null", "sweep.seed=[5, 6]", "seed=1", seeds=2)] == [1, 2]
    bare = {"name": "bare", **{key: value for key, value in RICH.items() if key != "name"}}
    assert [one.scenario.seed for one in drafts(bare, (), 2)] == [0, 1]


def test_names_say_the_seed():
    """Behind what the sweep says; pairs of settings keep their names."""
    names = [one.scenario.name for one in drafts("quickstart", ["sweep={runs: [{name: a}, {name: b}]}"], 2)]
    assert names == ["a, seed 7", "b, seed 7", "a, seed 8", "b, seed 8"]


@pytest.mark.parametrize("seeds", [0, 10_001, 2.0, True])
def test_the_number_of_seeds_is_a_whole_one(seeds):
    with pytest.raises(UserError, match=r"seeds must be a whole number (from 1 to 10,000|or None)"):
        edgefl.run("quickstart", seeds=seeds)


def test_the_command_line_refuses_what_cannot_be(capsys):
    for command in (["run", "quickstart", "--seeds", "0"], ["check", "--seeds", "2"]):
        status, _, error = run_command(capsys, *command)
        assert (status, "--seeds" in error) == (2, True)
