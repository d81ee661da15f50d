"""`edgefl timeline` and `RunResult.timeline`: which runs, clients and rounds, and what they say."""

from pathlib import Path

import pytest
from commands import run_command
from traced import read_back

import edgefl
from edgefl.core.errors import UserError
from edgefl.show.perfetto import build, choice

STREAM = {
    "sweep": None,
    "server": {"policy": {"name": "fedbuff", "buffer": 4}, "rounds": 12, "participants": 8},
    "fleet": {"like": "home-lab", "availability": {"name": "markov", "on": "60 ms", "off": "40 ms"}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run that trained nothing, whose jobs go on over the ends of rounds and whose clients come and go."""
    folder = tmp_path_factory.mktemp("runs") / "a run"
    edgefl.run("quickstart", overrides=STREAM, engine="null", out=folder)
    return folder


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(capsys, *arguments):
    status, _, err = run_command(capsys, "timeline", *arguments, "--out", "out.pftrace", "--force")
    assert status == 0, err
    return read_back(Path("out.pftrace").read_bytes()), err


def clients_of(found):
    return [int(name.split()[1]) for name in found.tracks if name.startswith("client ")]


def jobs_of(found):
    return [one for one in found.slices if "job" in one.arguments]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--clients", "x"], "'x' is not a number or a range where: --clients hint: try --clients 0,3,7-12"),
        (["--clients", "3-1"], "'3-1': the last number is below the first where: --clients"),
        (["--clients", "20"], "there is no client 20 where: --clients hint: the run's clients are 0 to 19"),
        (
            ["--rounds", "12-13"],
            "there is no round 12 to 13 where: --rounds hint: the run's rounds are 0 to 11",
        ),
        (["--out", "run.json"], "run.json must end in .pftrace or .perfetto-trace"),
    ],
)
def test_bad_input(capsys, here, folder, arguments, words):
    status, _, err = run_command(capsys, "timeline", folder, *arguments)
    assert status == 2
    assert words in " ".join(err.split())
    assert not list(here.iterdir())


def test_clients_that_are_asked_for(capsys, folder):
    whole, _ = shown(capsys, folder)
    some, err = shown(capsys, folder, "--clients", "0-2,19, 7")
    assert (clients_of(some), err) == ([0, 1, 2, 7, 19], "")
    own = [one.arguments for one in jobs_of(whole) if int(one.track.split()[1]) in {0, 1, 2, 7, 19}]
    assert [one.arguments for one in jobs_of(some)] == own
    assert some.counters == whole.counters
    flows = {flow for one in some.named("merge") for flow in one.into}
    assert flows == {one["job"] + 1 for one in own if one["ending"] == "merged"}


def test_rounds_that_are_asked_for(capsys, folder):
    whole, _ = shown(capsys, folder)
    some, _ = shown(capsys, folder, "--rounds", "3-5")
    rounds = {one.name: one for one in whole.slices if one.track == "server: rounds"}
    from_ns, to_ns = rounds["round 3"].from_ns, rounds["round 5"].to_ns
    assert [one.name[-1] for one in some.slices if one.track == "server: rounds"] == ["3", "4", "5"]
    assert [one.arguments["version"] for one in some.named("merge")] == [4, 5, 6]
    under_way = [one for one in jobs_of(whole) if one.from_ns < to_ns and one.to_ns > from_ns]
    assert [one.arguments for one in jobs_of(some)] == [one.arguments for one in under_way]
    assert min(one.from_ns for one in under_way) < from_ns < to_ns < max(one.to_ns for one in under_way)
    into = {flow for one in some.named("merge") for flow in one.into}
    through = {flow for one in jobs_of(some) for flow in one.through}
    assert into == through
    for name, values in some.counters.items():
        assert from_ns <= values[0][0] < values[-1][0] <= to_ns
        before = [value for t_ns, value in whole.counters[name] if t_ns <= from_ns]
        assert values[0][1] == before[-1]
    assert {one.arguments["round"] for one in some.named("evaluation")} == {3, 5}


def test_large_runs_show_some_clients(capsys, folder, monkeypatch, tmp_path):
    whole, _ = shown(capsys, folder)
    jobs = len(jobs_of(whole))
    monkeypatch.setattr(choice, "MOST_JOBS", jobs // 2)
    some, err = shown(capsys, folder)
    assert jobs // 4 <= len(jobs_of(some)) <= jobs // 2
    shown_clients, all_clients = clients_of(some), clients_of(whole)
    step = all_clients.index(shown_clients[1])
    assert shown_clients == all_clients[::step]
    assert (
        f"note: {jobs} jobs of {len(all_clients)} clients are too many for one trace, which has {jobs // 2} "
        f"of 10,000 at most: {len(shown_clients)} of {len(all_clients)} clients are shown; choose with"
    ) in err
    status, _, err = run_command(capsys, "timeline", folder, "--clients", "0-19")
    assert status == 2
    assert "choose fewer --clients or --rounds" in err
    assert len(jobs_of(shown(capsys, folder, "--rounds", "2")[0])) <= jobs // 2
    monkeypatch.setattr(choice, "MOST_JOBS", 1)
    assert run_command(capsys, "timeline", folder)[0] == 2
    monkeypatch.undo()
    # A trace has no more tracks than a browser can show, and no more times away.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(choice, "MOST_CLIENTS", 7)
    monkeypatch.setattr(build, "MOST_INTERVALS", 5)
    found, err = shown(capsys, folder)
    assert len(clients_of(found)) <= 7
    assert "too many for one trace" in err
    assert "when clients were away is not shown" in err
    assert jobs_of(found)
    assert not any(one.name == "away" for one in found.slices)
    assert run_command(capsys, "timeline", folder, "--clients", "0-7")[0] == 2


def test_from_python_and_without_options(folder, tmp_path, capsys):
    run = edgefl.open(folder).runs[0]
    status, out, err = run_command(capsys, "timeline", folder)
    first, second = out.splitlines()
    assert (status, err, second) == (0, "", "open it at https://ui.perfetto.dev")
    assert first.startswith("saved a-run.pftrace (")
    path = run.timeline(tmp_path / "some.pftrace", clients=[3, 0], rounds=(2, 4))
    found = read_back(path.read_bytes())
    assert clients_of(found) == [0, 3]
    assert len([one for one in found.slices if one.track == "server: rounds"]) == 3
    for asked, words in (
        ({"rounds": (4, 2)}, "4 to 2 is not a range"),
        ({"clients": [20]}, "there is no client 20"),
        ({"clients": [-1]}, "-1 to -1 is not a range"),
        ({"clients": []}, "no clients are named"),
    ):
        with pytest.raises(UserError, match=words):
            run.timeline(path, **asked)
