"""What commands print is what was asked for: texts unchanged, notes once, and where a mistake is."""

from __future__ import annotations

import io
import json
import re

import pytest
from commands import run_command
from rich.console import Console
from unfinished import UNPRICED

from edgefl.core import catalogue
from edgefl.planning.learning import DataAccess
from edgefl.runs.dry import overview


def test_a_folders_name_is_printed_as_it_is(tmp_path, capsys, monkeypatch):
    """Brackets in it are no markup."""
    monkeypatch.chdir(tmp_path)
    status, out, _ = run_command(capsys, "run", "quickstart", "--engine", "null", "--out", "[red]runs")
    assert status == 0
    assert "saved in [red]runs\n" in out


def test_a_files_text_is_not_wrapped_again(capsys):
    """YAML that is shown can be saved."""
    _, out, _ = run_command(capsys, "show", "profile", "home-lab")
    text = catalogue.find("profiles", "home-lab").path.read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) > 100
    assert text in out


@pytest.mark.usefixtures("unfinished")
def test_a_profile_names_a_device_without_a_price_once(capsys):
    """Before the reason."""
    _, out, _ = run_command(capsys, "profile", "stragglers", "--device", UNPRICED)
    assert f" {UNPRICED}: cannot be priced: " in out


def test_check_prints_a_note_once(capsys):
    """Also one that two scenarios have."""
    status, _, err = run_command(capsys, "check", "quickstart", "stragglers")
    notes = [line for line in err.splitlines() if line.startswith("note: ")]
    assert status == 0
    assert any("numbers are assumed, of device raspberry-pi-4b, " in note for note in notes)
    assert len(notes) == len(set(notes))


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (("check", "--method", "nope"), "where: --method\n"),
        (("check", "quickstart", "--method", "fedavg"), "--method takes no scenario"),
        (("check", "quickstart", "--set", "sweep=3"), "where: --set sweep=3\n"),
        (("check", "quickstart", "--set", "sweep={method: fedavg}"), "fedavg}, key 'sweep.method'\n"),
    ],
)
def test_a_mistake_on_the_command_line_is_placed_there(arguments, where, capsys):
    """Not in a file that the user did not write."""
    status, _, err = run_command(capsys, *arguments)
    assert status == 2
    assert where in err


STILL = (
    "{title: t, latency: {value: 0, status: assumed, source: s}, radio: {status: unknown, source: s}, "
    "trace: {rows: [{down: '0,0 1,1', up: '0,1 1,1'}]}}"
)

# Wrong settings: (arguments, exit status, what the message says).
WRONG = {
    "engine": (["--set", "engine=lop"], 2, "unknown engine 'lop'"),
    "an engine's parameter": (["--set", "engine={name: vmapped, grop: 3}"], 2, "unknown key 'grop'"),
    "an engine's value": (["--set", "engine={name: loop, device: tpu}"], 2, "engine.device should be"),
    "a device that is not there": (["--set", "engine={name: loop, device: 'cuda:99'}"], 2, "unknown device"),
    "data for training": (["--set", "task.samples=5", "--set", "engine=loop"], 2, "clients have no data"),
    "a published accuracy": (
        ["--set", "published={paper: a, runs: [{method: fedavg, accuracy: 40.2}]}"],
        2,
        "'accuracy' must be a share of 1, such as 0.402",
    ),
    "participants": (["--set", "server.participants=99"], 2, "99 participants per round"),
    "tiers": (["--set", "server.selector={name: tiers, tiers: 1000}"], 2, "1000 tiers of 20 clients"),
    "a key": (["--set", "server.round=3"], 2, "unknown key 'round'"),
    "no data left": (["--set", "evaluate={on: holdout, holdout: 1e-9}"], 2, "holdout"),
    "memory": (
        ["--set", "fleet={members: [{device: coral-edge-tpu, link: 4g, dtype: int8}]}"],
        1,
        "every client was refused",
    ),
    "nobody is there any more": (
        ["--set", "fleet.availability={name: intervals, rows: '0,0,0.001'}"],
        1,
        "nobody can be asked any more",
    ),
    "a file that is not there": (
        ["--set", "fleet.availability={name: intervals, file: nowhere.csv}"],
        2,
        "no file 'nowhere.csv'",
    ),
    "a link on which nothing moves": (
        ["--set", f"fleet={{members: [{{device: titan-v, link: mine}}], links: {{mine: {STILL}}}}}"],
        2,
        "all down rates are 0",
    ),
    "a policy's own check": (
        ["--set", "server={policy: overselect}"],
        2,
        "how many clients to merge",
    ),
}


@pytest.mark.parametrize(("arguments", "status", "what"), WRONG.values(), ids=WRONG)
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


def test_show_raw_prints_the_file_as_it_is(capsys):
    """Byte for byte, also a file of code, so that it can be copied and changed."""
    for kind, name in (("scenario", "quickstart"), ("Devices", "raspberry-pi-4b"), ("method", "FedAvg")):
        status, out, _ = run_command(capsys, "show", "--raw", kind, name)
        assert status == 0
        assert out.encode() == catalogue.find(catalogue.kind_of(kind), name).path.read_bytes()


def test_show_needs_no_kind_where_one_has_the_name(capsys):
    """The same as with it."""
    alone, raw = run_command(capsys, "show", "fedprox"), run_command(capsys, "show", "--raw", "fedprox")
    assert alone == run_command(capsys, "show", "method", "fedprox")
    assert alone[0] == 0
    assert raw == run_command(capsys, "show", "--raw", "method", "fedprox")
    status, _, err = run_command(capsys, "show", "fedadam")
    assert status == 2
    assert "--set 'method={name: fedopt, optimizer: adam}'" in err


@pytest.mark.parametrize("partition", ["dirichlet", "iid", "shards", "classes-per-client", "dirichlet-equal"])
def test_more_clients_than_samples_are_one_hint_away(partition, capsys, tmp_path, monkeypatch):
    """Whatever splits the data: the hint's setting suffices, for check and for run."""
    monkeypatch.chdir(tmp_path)
    small = ["--set", "sweep=null", "--set", "server.rounds=1", "--set", "task.clients=10000"]
    large = [*small, "--set", f"task.partition={partition}"]
    status, _, err = run_command(capsys, "check", "quickstart", *large)
    assert status == 2
    (setting,) = re.findall(r"hint:  without data, for the clock alone: --set (\S+);", err)
    assert run_command(capsys, "check", "quickstart", *large, "--set", setting)[0] == 0
    if partition == "iid":
        status, _, err = run_command(capsys, "run", "quickstart", *large, "--set", setting)
        assert status == 0
        assert "clients have numbers of samples and no data" in err


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


def test_a_kind_is_named_in_the_singular_or_plural(capsys):
    """In any case; another word gets the nearest."""
    outputs = {run_command(capsys, "list", word)[1] for word in ("device", "devices", "Devices", "DEVICE")}
    assert len(outputs) == 1
    status, _, err = run_command(capsys, "list", "devcies")
    assert status == 2
    assert "did you mean 'devices'?" in err


def test_lists_and_descriptions_are_also_json(capsys):
    """The same as the tables have."""
    found = json.loads(run_command(capsys, "list", "policy", "--json")[1])
    assert {"name", "description", "file"} == set(found["kinds"]["policies"][0])
    shown = json.loads(run_command(capsys, "show", "device", "raspberry-pi-4b", "--json")[1])
    assert {"number", "value", "status", "source or reason"} == set(shown["rows"][0])


def test_check_without_a_scenario_has_a_row_for_each(capsys, monkeypatch):
    """Ranges over the runs, of which one of each kind is planned; a wrong file does not stop the others."""
    names, real = ("quickstart", "tuning/quickstart", "costs"), catalogue.entries
    few = {name: real("scenarios")[name] for name in names}
    monkeypatch.setattr(catalogue, "entries", lambda kind: few if kind == "scenarios" else real(kind))
    status, out, err = run_command(capsys, "check")
    assert status == 0
    assert len([line for line in out.splitlines() if line.strip().startswith(names)]) == 6
    assert " runs are valid. " in " ".join(out.split())
    assert "one was planned, 12 in all" in " ".join(out.split())
    assert len([line for line in err.splitlines() if "numbers are assumed" in line]) == 1
    found = json.loads(run_command(capsys, "check", "--json")[1])["scenarios"]
    (first,) = [one for one in found if one["scenario"] == "quickstart"]
    assert (first["valid"], [run["clients"] for run in first["runs"]]) == (3, [20, 20, 20])
    assert {run["rounds"] for run in first["runs"]} == {3}
    status, _, err = run_command(capsys, "check", "--set", "server.participants=50")
    assert status == 2
    assert err.count("50 participants per round, but only 20 clients") == 2


def test_figures_at_a_glance_are_those_of_the_first_rounds(capsys):
    """Where all rounds are alike, three of them take half of what six do."""
    settings = ["sweep=null", "server={rounds: 6}", "fleet={like: home-lab, jitter: fixed}"]
    given = [word for one in settings for word in ("--set", one)]
    (whole,) = json.loads(run_command(capsys, "check", "quickstart", *given, "--json")[1])["runs"]
    (run,) = overview("quickstart", settings, DataAccess(need="embedded")).runs
    short = run.summary
    assert (short.down_bytes + short.up_bytes) * 2 == whole["down_bytes"] + whole["up_bytes"]
    assert short.virtual_s * 2 == pytest.approx(whole["virtual_s"])
    assert short.energy.joules * 2 == pytest.approx(whole["joules"])
    assert short.waiting_joules * 2 == pytest.approx(whole["waiting_joules"])


def test_assumptions_are_told_on_one_line(capsys, tmp_path, monkeypatch):
    """How many numbers, and the command that shows them; the complete list is in the JSON document."""
    monkeypatch.chdir(tmp_path)
    for arguments in (("check", "quickstart"), ("run", "quickstart", "--engine", "null", "--out", "made")):
        _, _, err = run_command(capsys, *arguments)
        (line,) = [line for line in err.splitlines() if "assumed" in line]
        assert "numbers are assumed, of device raspberry-pi-4b, " in line
        assert line.endswith(": edgefl show device raspberry-pi-4b")
    (first, *_) = json.loads(run_command(capsys, "check", "quickstart", "--json")[1])["runs"]
    assert any(note.startswith("raspberry-pi-4b: assumed ") for note in first["notes"])


def test_a_bad_file_of_ones_own_does_not_stop_a_list(tmp_path, capsys, monkeypatch):
    """A folder that there is not is named once, on stderr."""
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "bad.yaml").write_bytes(b"\xff\xfe")
    monkeypatch.setenv("EDGEFL_PATH", f"{tmp_path}:~nouser-of-this-name")
    status, out, err = run_command(capsys, "list")
    assert (status, err.count("note: ")) == (0, 1)
    assert "raspberry-pi-5" in out


def test_a_wrong_file_does_not_stop_what_asks_for_all(tmp_path, capsys, monkeypatch):
    """All devices, and the schema of all components: the others are used, and a note says why it is not."""
    for kind in ("devices", "models"):
        (tmp_path / kind).mkdir()
    (tmp_path / "devices" / "torn.yaml").write_text("kind: [\n", encoding="utf-8")
    (tmp_path / "models" / "torn.py").write_text("import nothing_of_this_name\n", encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    status, out, err = run_command(capsys, "profile", "quickstart", "--device", "all", "--json")
    assert status == 0
    assert "raspberry-pi-5" in out
    assert err.count("note: device torn is left out: ") == 1
    status, out, err = run_command(capsys, "schema")
    names = json.loads(out)["$defs"]["models"]["anyOf"][0]["enum"]
    assert status == 0
    assert "mlp" in names
    assert "torn" not in names
    assert err.count("note: model torn is left out: ") == 1


def test_check_method_prints_one_document(capsys):
    """Each promise, and whether it is kept."""
    status, out, _ = run_command(capsys, "check", "--method", "local", "--json")
    found = json.loads(out)
    assert (status, found["method"]) == (0, "local")
    assert {one["kept"] for one in found["promises"]} <= {True, None}


def test_a_terminal_shows_what_is_being_checked(tmp_path, capsys, monkeypatch):
    """By its name as it is, which may look like markup."""
    terminal = Console(file=io.StringIO(), force_terminal=True, width=200)
    monkeypatch.setattr("edgefl.cli.answering.stderr", lambda: terminal)
    path = tmp_path / "rev[b].yaml"
    path.write_text("name: [\n", encoding="utf-8")
    assert run_command(capsys, "check", path)[0] == 2
    assert f"checking {path}" in terminal.file.getvalue()
