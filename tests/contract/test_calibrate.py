"""``edgefl calibrate`` for real, too shortly for its figures to mean anything."""

from __future__ import annotations

import json

import pytest

from edgefl.calibrate import calibrate
from edgefl.cli import main
from edgefl.core.errors import UserError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A directory of the user's own, on EDGEFL_PATH."""
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    return tmp_path


def command(capsys, *arguments):
    """(exit status, stdout, stderr) of ``edgefl calibrate``."""
    with pytest.raises(SystemExit) as ended:
        main(["calibrate", *arguments])
    printed = capsys.readouterr()
    return ended.value.code or 0, printed.out, printed.err


def test_a_machine_becomes_a_device(folder, capsys):
    """It measures, writes the file, prints one JSON document, and will not do it again over the same file."""
    status, out, _ = command(capsys, "this-machine", "--quick", "--json")
    found = json.loads(out)
    assert status == 0
    assert found["file"] == str(folder / "devices" / "this-machine.yaml")
    assert {row["use"] for row in found["steps"]} == {"fit", "held out"}
    assert all(row["measured_s"] > 0 and row["predicted_s"] > 0 for row in found["steps"])
    status, out, err = command(capsys, "this-machine", "--quick")
    assert (status, out) == (2, "")
    assert "already exists" in err
    assert "--force" in err


def test_nothing_is_measured_in_vain(tmp_path):
    """What keeps the file from being written, and what would measure nothing, is said before."""

    def measured(*_):
        raise AssertionError("it measured")

    (tmp_path / "file").write_text("", encoding="utf-8")
    for settings, message in (
        ({"out": tmp_path / "file" / "x.yaml"}, "cannot write in"),
        ({"out": tmp_path}, "is a folder"),
        ({"threads": 10_000}, "10000 threads would compete for"),
    ):
        with pytest.raises(UserError, match=message):
            calibrate("mine", run=measured, **settings)
