"""What commands print is what was asked for: texts unchanged, notes once, and where a mistake is."""

from __future__ import annotations

import pytest
from commands import run_command

from edgefl.core import catalogue
from edgefl.core.notes import note


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
    assert any("raspberry-pi-4b" in note for note in notes)
    assert len(notes) == len(set(notes))


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (("check", "--method", "nope"), "where: --method\n"),
        (("check", "quickstart", "--set", "sweep=3"), "where: --set sweep=3\n"),
        (("check", "quickstart", "--set", "sweep={method: fedavg}"), "fedavg}, key 'sweep.method'\n"),
    ],
)
def test_a_mistake_on_the_command_line_is_placed_there(arguments, where, capsys):
    """Not in a file that the user did not write."""
    status, _, err = run_command(capsys, *arguments)
    assert status == 2
    assert where in err


def test_a_bad_file_of_ones_own_is_named_and_the_rest_is_listed(tmp_path, capsys, monkeypatch):
    """Once, on stderr."""
    (tmp_path / "devices").mkdir()
    bad = tmp_path / "devices" / "bad.yaml"
    bad.write_bytes(b"\xff\xfe")
    monkeypatch.setenv("EDGEFL_PATH", f"{tmp_path}:~nouser-of-this-name")
    note.cache_clear()
    status, out, err = run_command(capsys, "list")
    assert (status, err.count("note: ")) == (0, 2)
    assert f"note: {bad} is left out: it is not UTF-8 text\n" in err
    assert "raspberry-pi-5" in out
