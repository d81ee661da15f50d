"""What commands print is what was asked for: texts unchanged, notes once, and where a mistake is."""

import json
import re

import pytest
from commands import run_command
from nightly import sampled

from edgefl.core import catalogue


def test_a_files_text_is_not_wrapped_again(capsys):
    _, out, _ = run_command(capsys, "show", "profile", "home-lab")
    text = catalogue.find("profiles", "home-lab").path.read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) > 100
    assert text in out


STILL = (
    "{title: t, latency: {value: 0, status: assumed, source: s}, radio: {status: unknown, source: s}, "
    "trace: {rows: [{down: '0,0 1,1', up: '0,1 1,1'}]}}"
)

# Wrong settings: (arguments, exit status, what the message says).
WRONG = {
    "engine": (["--set", "engine=lop"], 2, "unknown engine 'lop'"),
    "a device that is not there": (["--set", "engine={name: loop, device: 'cuda:99'}"], 2, "unknown device"),
    "participants": (["--set", "server.participants=99"], 2, "99 participants per round"),
    "a key": (["--set", "server.round=3"], 2, "unknown key 'round'"),
    "a method": (["--set", "method=fedagv"], 2, "unknown method 'fedagv'"),
    "a number": (["--set", "seed=x"], 2, "seed should be a whole number; got 'x'"),
    "nobody is there any more": (
        ["--set", "fleet.availability={name: intervals, rows: '0,0,0.001'}"],
        1,
        "nobody can be asked any more",
    ),
    "a link on which nothing moves": (
        ["--set", f"fleet={{members: [{{device: titan-v, link: mine}}], links: {{mine: {STILL}}}}}"],
        2,
        "all down rates are 0",
    ),
}


@sampled(3, ("arguments", "status", "what"), WRONG.values(), ids=WRONG)
def test_check_refuses_what_run_refuses(arguments, status, what, capsys, tmp_path, monkeypatch):
    """The same message and the same exit status, whether the mistake is found early or ends the run."""
    monkeypatch.chdir(tmp_path)
    arguments = ["--set", "sweep=null", "--set", "server.rounds=2", *arguments]
    found = {}
    for command in ("run", "check"):
        own = ["--out", "made"] if command == "run" else []
        ended, _, err = run_command(capsys, command, "quickstart", *arguments, *own)
        found[command] = ended, [line.split("error: ")[-1] for line in err.splitlines() if what in line]
        assert status == 1 or "\n  where: --set " in err
    assert found["check"][0] == found["run"][0] == status
    assert found["check"][1], "check does not say it"
    assert found["check"][1][-1].split(" failed: ")[-1] in found["run"][1][-1]


def test_show_needs_no_kind_where_one_has_the_name(capsys):
    alone, raw = run_command(capsys, "show", "fedprox"), run_command(capsys, "show", "--raw", "fedprox")
    assert alone == run_command(capsys, "show", "method", "fedprox")
    assert alone[0] == 0
    assert raw == run_command(capsys, "show", "--raw", "method", "fedprox")
    status, _, err = run_command(capsys, "show", "fedadam")
    assert status == 2
    assert "did you mean 'fedopt'?" in err


def test_more_clients_than_samples_are_one_hint_away(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    large = ["--set", "sweep=null", "--set", "server.rounds=1", "--set", "task.clients=10000"]
    large += ["--set", "task.partition=iid"]
    status, _, err = run_command(capsys, "check", "quickstart", *large)
    assert status == 2
    (setting,) = re.findall(r"hint:  without data, for the clock alone: --set (\S+);", err)
    assert run_command(capsys, "check", "quickstart", *large, "--set", setting)[0] == 0
    status, _, err = run_command(capsys, "run", "quickstart", *large, "--set", setting)
    assert status == 0
    assert "clients have numbers of samples and no data" in err


@pytest.mark.nightly
def test_a_fleet_is_also_given_by_its_path(capsys, tmp_path, monkeypatch):
    """Wherever a name is: in a setting, under what inherits from it, and for a replay."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my fleet.yaml").write_text("members: [{device: jetson-nano, link: ethernet}]\n", "utf-8")
    base = ["quickstart", "--set", "sweep=null", "--set", "server.rounds=1", "--set", "engine=null"]
    for setting in ("fleet=./my fleet.yaml", "fleet={like: my fleet.yaml}"):
        status, _, err = run_command(capsys, "check", *base, "--set", setting)
        assert status == 0
        assert "device jetson-nano" in err
    assert run_command(capsys, "run", *base, "--set", "fleet=my fleet.yaml", "--out", "runs/one")[0] == 0
    monkeypatch.chdir(tmp_path / "runs")
    assert run_command(capsys, "replay", "one", "--fleet", "../my fleet.yaml", "--out", "two")[0] == 0


@pytest.mark.nightly
def test_check_without_a_scenario_has_a_row_for_each(capsys, monkeypatch):
    """Ranges over the runs, of which one of each kind is planned; a wrong file does not stop the others."""
    names, real = ("quickstart", "async"), catalogue.entries
    few = {name: real("scenarios")[name] for name in names}
    monkeypatch.setattr(catalogue, "entries", lambda kind: few if kind == "scenarios" else real(kind))
    status, out, err = run_command(capsys, "check")
    assert status == 0
    assert len([line for line in out.splitlines() if line.strip().startswith(names)]) == 2
    assert "8 runs are valid. Of those that differ only in seed and learning rate one" in " ".join(
        out.split()
    )
    assert len([line for line in err.splitlines() if "numbers are assumed" in line]) == 1
    found = json.loads(run_command(capsys, "check", "--json")[1])["scenarios"]
    (first,) = [one for one in found if one["scenario"] == "quickstart"]
    assert (first["valid"], [run["clients"] for run in first["runs"]]) == (3, [20, 20, 20])


def test_assumptions_are_told_on_one_line(capsys, tmp_path, monkeypatch):
    """How many numbers, and the command that shows them; the complete list is in the JSON document."""
    monkeypatch.chdir(tmp_path)
    one = ("quickstart", "--set", "sweep=null")
    for arguments in (("check", *one), ("run", *one, "--engine", "null", "--out", "made")):
        _, _, err = run_command(capsys, *arguments)
        (line,) = [line for line in err.splitlines() if "assumed" in line]
        assert "numbers are assumed, of device raspberry-pi-4b, " in line
        assert line.endswith(": edgefl show device raspberry-pi-4b")
    (first, *_) = json.loads(run_command(capsys, "check", *one, "--json")[1])["runs"]
    assert any(note.startswith("raspberry-pi-4b: assumed ") for note in first["notes"])


def test_a_wrong_file_does_not_stop_what_asks_for_all(tmp_path, capsys, monkeypatch):
    """All devices, and the schema of all components: the others are used, and a note says why it is not."""
    for kind in ("devices", "models"):
        (tmp_path / kind).mkdir()
    (tmp_path / "devices" / "torn.yaml").write_text("kind: [\n", encoding="utf-8")
    (tmp_path / "models" / "torn.py").write_text("import nothing_of_this_name\n", encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    status, out, err = run_command(
        capsys, "profile", "quickstart", "--set", "sweep=null", "--device", "all", "--json"
    )
    assert status == 0
    assert "raspberry-pi-5" in out
    assert err.count("note: device torn is left out: ") == 1
    status, out, err = run_command(capsys, "schema")
    names = json.loads(out)["$defs"]["models"]["anyOf"][0]["enum"]
    assert status == 0
    assert "mlp" in names
    assert "torn" not in names
    assert err.count("note: model torn is left out: ") == 1


def test_show_and_list(capsys):
    """A kind is singular or plural, in any case; ``--raw`` is the file to the byte, ``--json`` the table."""
    assert len({run_command(capsys, "list", word)[1] for word in ("device", "devices", "DEVICE")}) == 1
    status, _, err = run_command(capsys, "list", "devcies")
    assert (status, "did you mean 'devices'?" in err) == (2, True)
    _, out, _ = run_command(capsys, "show", "--raw", "method", "FedAvg")
    assert out.encode() == catalogue.find("methods", "fedavg").path.read_bytes()
    found = json.loads(run_command(capsys, "list", "policy", "--json")[1])
    assert {"name", "description", "file"} == set(found["kinds"]["policies"][0])
    found = json.loads(run_command(capsys, "show", "device", "raspberry-pi-4b", "--json")[1])
    assert {"number", "value", "status", "source or reason"} == set(found["rows"][0])
