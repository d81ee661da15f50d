"""What commands print is what was asked for: texts unchanged, notes once, and where a mistake is."""

from __future__ import annotations

import pytest
from commands import run_command

from edgefl.core import catalogue


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


def test_a_profile_names_a_device_without_a_price_once(capsys):
    """Before the reason."""
    _, out, _ = run_command(capsys, "profile", "stragglers", "--device", "pixel-8")
    assert " pixel-8: cannot be priced: " in out


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
        (("check", "quickstart", "--set", "sweep=3"), "where: --set sweep=3\n"),
        (("check", "quickstart", "--set", "sweep={method: fedavg}"), "where: --set sweep={method: fedavg}, "),
    ],
)
def test_a_mistake_on_the_command_line_is_placed_there(arguments, where, capsys):
    """Not in a file that the user did not write."""
    status, _, err = run_command(capsys, *arguments)
    assert status == 2
    assert where in err


# Wrong settings: (arguments, exit status, what the message says).
WRONG = {
    "engine": (["--set", "engine=lop"], 2, "unknown engine 'lop'"),
    "an engine's parameter": (["--set", "engine={name: vmapped, grop: 3}"], 2, "unknown key 'grop'"),
    "an engine's value": (["--set", "engine={name: loop, device: tpu}"], 2, "engine.device must match"),
    "a device that is not there": (["--set", "engine={name: loop, device: 'cuda:99'}"], 2, "unknown device"),
    "data for training": (["--set", "task.samples=5", "--set", "engine=loop"], 2, "clients have no data"),
    "a claim's method": (
        ["--set", "published=[{method: nope, source: a paper}]"],
        2,
        "unknown method 'nope'",
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
    assert found["check"][0] == found["run"][0] == status
    assert found["check"][1], "check does not say it"
    assert found["check"][1][-1].split(" failed: ")[-1] in found["run"][1][-1]
