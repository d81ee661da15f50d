"""``edgefl calibrate`` for real, but too briefly for meaningful figures."""

import json
import os
import re
import subprocess

import pytest
from commands import run_command

from edgefl.calibrate import calibrate, suites
from edgefl.calibrate.calibration import next_step
from edgefl.calibrate.workloads import Network
from edgefl.core import catalogue
from edgefl.core.errors import UserError

pytestmark = pytest.mark.usefixtures("preloaded_processes")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    return tmp_path


@pytest.mark.nightly
def test_a_machine_becomes_a_device(folder, capsys, monkeypatch):
    """It measures, with a line a step, and prints one JSON document; it does not overwrite its file."""
    small = {
        "resnet18": Network("fedcka-cnn", (3, 32, 32)),
        "mobilenet-v2": Network("cnn2", (3, 32, 32), {"hidden": 64}, "a smaller cnn2"),
    }
    networks = [(small.get(one.model, one), *how) for one, *how in suites._NETWORKS]  # noqa: SLF001
    monkeypatch.setattr(suites, "_NETWORKS", networks)
    status, out, err = run_command(capsys, "calibrate", "this-machine", "--quick", "--json")
    steps = re.findall(r"(?m)^(\d+) of (\d+): \w", err)
    assert steps == [(str(place), str(len(steps))) for place in range(1, len(steps) + 1)]
    assert len(steps) > 5
    found = json.loads(out)
    assert status == 0
    assert found["file"] == str(folder / "devices" / "this-machine.yaml")
    assert found["next"] == "edgefl profile quickstart --device this-machine"
    assert {row["use"] for row in found["steps"]} == {"fit", "held out"}
    assert all(row["measured_s"] > 0 and row["predicted_s"] > 0 for row in found["steps"])
    assert {row["method"] for row in found["methods"]} >= {"fedavg", "fedclassavg", "spherefed: calibrate"}
    assert all(row["measured"] > 0 and row["predicted"] > 0 for row in found["methods"])
    status, out, err = run_command(capsys, "calibrate", "this-machine", "--quick")
    assert (status, out) == (2, "")
    assert "this-machine.yaml exists" in err
    assert "--force" in err


def test_bad_arguments_are_refused_before_measuring(tmp_path):
    """A file that cannot be written, a wattmeter's log with a wrong line, and more threads than cores."""

    def measured(*_):
        raise AssertionError("it measured")

    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "log.csv").write_text("time,watts\n1,2\n2,x\n", encoding="utf-8")
    for settings, message in (
        ({"out": tmp_path / "file" / "x.yaml"}, "there is no folder"),
        ({"out": tmp_path / "folder.yaml", "force": True}, "is a folder"),
        ({"out": tmp_path}, "is a folder"),
        ({"out": tmp_path / "x.YAML"}, "invalid device name"),
        ({"out": tmp_path / "raspberry-pi-4b.yaml"}, "belongs to another device"),
        ({"power_log": tmp_path / "log.csv"}, "'x' must be watts"),
        ({"threads": 10_000}, "10000 threads would compete for"),
    ):
        with pytest.raises(UserError, match=message):
            calibrate("mine", run=measured, **settings)


DEVICE = """title: mine
category: sbc
kind: roofline
"""


def test_the_last_line_makes_the_file_found(tmp_path, monkeypatch):
    """A shell runs it as it is; then the name is a device's, and what was found before still is."""
    root = tmp_path / "a folder"
    path = root / "devices" / "mine.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(DEVICE, encoding="utf-8")
    (tmp_path / "other").mkdir()
    before = "other"
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path / before))
    line = next_step(path)
    assert line.startswith("export EDGEFL_PATH=")
    shown = subprocess.run(
        ["/bin/sh", "-c", f'{line}; printf %s "$EDGEFL_PATH"'], capture_output=True, text=True, check=True
    ).stdout
    assert shown.split(os.pathsep) == [str(root), str(tmp_path / before)]
    monkeypatch.setenv("EDGEFL_PATH", shown)
    assert catalogue.entries("devices")["mine"].path == path
    assert next_step(path) == "edgefl profile quickstart --device mine"
    elsewhere = next_step(tmp_path / "mine.yaml")
    assert elsewhere.startswith("move it to DIR/devices/, and export EDGEFL_PATH=DIR")
