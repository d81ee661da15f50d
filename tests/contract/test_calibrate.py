"""``edgefl calibrate`` for real, but too briefly for meaningful figures."""

from __future__ import annotations

import json

import pytest

from edgefl.calibrate import calibrate
from edgefl.cli import main
from edgefl.core.errors import UserError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder on EDGEFL_PATH."""
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    return tmp_path


def command(capsys, *arguments):
    """(exit status, stdout, stderr) of ``edgefl calibrate``."""
    with pytest.raises(SystemExit) as ended:
        main(["calibrate", *arguments])
    printed = capsys.readouterr()
    return ended.value.code or 0, printed.out, printed.err


def test_a_machine_becomes_a_device(folder, capsys):
    """It measures, writes the file and prints one JSON document; a second time it refuses to overwrite."""
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


def test_bad_arguments_are_refused_before_measuring(tmp_path):
    """A file that cannot be written, and more threads than cores."""

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
