"""Options that are short for a setting: what they do, and where their mistakes are placed."""

import json

import pytest
from commands import run_command

import edgefl
from edgefl.store.reader import read

SCENARIO = ["quickstart", "--set", "sweep=null", "--set", "server.rounds=1"]


def links(folder):
    with read(folder) as reader:
        return {row["link"] for row in reader.rows("kinds")}


def test_link_replaces_the_links_of_all_members(tmp_path, capsys):
    options = ["--link", "3g", "--engine", "null", "--out", tmp_path / "1"]
    status, _, _ = run_command(capsys, "run", *SCENARIO, *options)
    assert (status, links(tmp_path / "1")) == (0, {"3g"})
    with read(tmp_path / "1") as reader:
        resolved = reader.document.data["fleet"]
    assert "link" not in resolved
    assert {member["link"] for member in resolved["members"]} == {"3g"}
    sweep = {"sweep": {"fleet.link": ["3g", "wifi-pi4"]}, "server.rounds": 1}
    swept = edgefl.run("quickstart", overrides=sweep, engine="null", out=tmp_path / "2")
    assert [links(run.folder) for run in swept.runs] == [{"3g"}, {"wifi-pi4"}]
    times = []
    for options in ((), ("--link", "3g")):
        _, out, _ = run_command(capsys, "check", *SCENARIO, *options, "--json")
        times.append(json.loads(out)["runs"][0]["virtual_s"])
    assert times[0] < times[1] == swept.summary()[0].virtual_s


def test_seed_works_wherever_runs_are_planned(capsys):
    _, out, _ = run_command(capsys, "check", *SCENARIO, "--seed", "5", "--json")
    assert json.loads(out)["runs"][0]["seed"] == 5
    assert run_command(capsys, "profile", *SCENARIO, "--seed", "5", "--json")[0] == 0
    for command in ("check", "profile", "run"):
        status, _, err = run_command(capsys, command, *SCENARIO, "--seed", 10**19)
        assert (status, f"where: --seed {10**19}" in err) == (2, True)


MISTAKES = {
    "--link": (["run", "--link", "wifi9"], "unknown link 'wifi9'", "--link wifi9"),
    "--torch-device": (["run", "--torch-device", "cuda:77"], "cuda:77", "--torch-device cuda:77"),
    "no workers": (["run", "--engine", "loop", "--workers", "2"], "unknown key 'workers'", "--workers 2"),
    "many workers": (["run", "--workers", "99999"], "less than or equal to 256", "--workers"),
    "--ray-address": (["run", "--ray-address", "auto"], "address", "--ray-address auto"),
}


@pytest.mark.parametrize(("arguments", "what", "where"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_placed_at_its_option(tmp_path, capsys, monkeypatch, arguments, what, where):
    """Not at --set, which nobody wrote; exit status 2."""
    monkeypatch.delenv("EDGEFL_ENGINE", raising=False)
    command, *options = arguments
    status, _, err = run_command(capsys, command, *SCENARIO, *options, "--out", tmp_path / "runs")
    assert (status, what in err, f"where: {where}" in err, "--set" in err) == (2, True, True, False), err
    assert not (tmp_path / "runs").exists()


def test_a_path_that_is_too_long_is_refused(capsys):
    for command in (("run", *SCENARIO, "--out"), ("compare",), ("export",), ("infer",), ("bench",)):
        given = (*command, "x" * 300, *(["x.png"] if "infer" in command else []))
        status, _, err = run_command(capsys, *given)
        assert (status, err.count("edgefl failed")) == (2, 0), command
        assert "too long" in err, command
