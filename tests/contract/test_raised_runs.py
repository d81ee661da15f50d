"""A run that is resumed with raised limits is, bit for bit, the run that had them from the beginning."""

import pytest
from interrupted import POLICIES, copied, merged, scenario
from nightly import sampled
from resumed import same_runs

import edgefl
from edgefl.core.errors import UserError
from edgefl.store.reader import read

CASES = {
    # Learning, limits, those that are set, and the limits then.
    "evaluations out of turn": (
        {"method": "fedclassavg", "evaluate": {"every": 2}},
        {"rounds": 3},
        ["server.rounds=6"],
        {"rounds": 6},
    ),
    "an exchange at the end": (
        {"method": "spherefed"},
        {"rounds": 2},
        ["server.until.rounds=4"],
        {"rounds": 4},
    ),
    "a time that broke the rounds off": (
        {"method": "scaffold", "server": {"policy": POLICIES["fedasync"]}},
        {"time": "40 ms"},
        ["server.until.time=80 ms"],
        {"time": "80 ms"},
    ),
    "an accuracy": (
        {"server": {"policy": POLICIES["fedbuff"]}, "evaluate": {"every": 2}},
        {"rounds": 9, "accuracy": 0.2},
        ["server.until.accuracy=null"],
        {"rounds": 9},
    ),
}


def runs(case, tmp_path, **how):
    """A run with its first limits, one with the last, and the settings that lead from one to the other."""
    learning, before, settings, after = CASES[case]
    folders = []
    for name, until in (("short", before), ("long", after)):
        given = scenario(learning, {"server": {"rounds": None}})
        given = merged(given, {"server": {"until": until}})
        (done,) = edgefl.run(given, out=tmp_path / name, **how).runs
        assert done.status == "done", done.reason
        folders.append(done.folder)
    return *folders, settings


@sampled(2, "case", CASES)
def test_a_raised_run_is_the_longer_one(tmp_path, case):
    """Its rows, weights, states and facts; each of the shorter ones has ended otherwise than it goes on."""
    short, long, settings = runs(case, tmp_path, engine="loop")
    (done,) = edgefl.resume(short, overrides=settings).runs
    assert (done.status, done.folder) == ("done", short)
    same_runs(long, short)


@pytest.mark.nightly
@sampled(1, ("engine", "most"), [("loop", 3), ("null", 1000)])
def test_a_raised_run_that_is_killed(tmp_path, engine, most):
    """At some or all of its writes: resumed with the same settings it is the longer run all the same."""
    short, long, settings = runs("an exchange at the end", tmp_path, engine=engine)
    with copied(short, tmp_path / "copies", most, "raised") as copies:
        edgefl.resume(short, overrides=settings)
    same_runs(long, short)
    assert copies.kept
    for copy in copies.kept:
        edgefl.resume(copy, overrides=settings)
        same_runs(long, copy)


@pytest.mark.nightly
def test_what_is_refused_changes_nothing(tmp_path):
    """A lower limit, another setting: the run is done as it was."""
    short, _, _ = runs("evaluations out of turn", tmp_path, engine="null")
    for setting in ("server.rounds=2", "server.until.time=1 h", "seed=3", "task.clients=9"):
        with pytest.raises(UserError):
            edgefl.resume(short, overrides=[setting])
    with read(short) as reader:
        assert reader.meta["status"] == "done"
        assert reader.document.data["scenario"]["server"]["until"] == {"rounds": 3}
