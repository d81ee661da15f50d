"""Devices from data sheets: a board, a phone and a microcontroller in a few lines each, with ``like``."""

import json
import re

import pytest
from commands import run_command

from edgefl.core.sourced import sourced
from edgefl.planning.fleets import device

DEVICES = {
    "orange-pi-5": """
title: Orange Pi 5, 8 GB (RK3588S)
like: raspberry-pi-5
peak: {fp32: 153.6 GFLOP/s}  # four Cortex-A76 at 2.4 GHz, 16 FLOP a cycle
memory: 8 GiB
memory_bandwidth: {value: 12.4 GB/s, status: measured, source: "memcpy of an RK3588, geerlingguy/sbc-reviews"}
""",
    "pixel-7": """
title: Google Pixel 7 (Tensor G2)
like: pixel-6
peak: {fp32: 257.6 GFLOP/s}  # 2 x 2.85 GHz x 32 and 2 x 2.35 GHz x 16 FLOP a cycle
battery: 16.8 Wh  # 4355 mAh at 3.85 V
""",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("EDGEFL_PATH", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "devices").mkdir()
    for name, text in DEVICES.items():
        (tmp_path / "devices" / f"{name}.yaml").write_text(text, encoding="utf-8")


def test_they_are_priced(capsys):
    """Times and energies have values and bounds; the profile says how many numbers are assumed."""
    options = [word for name in DEVICES for word in ("--device", name)]
    command = ("profile", "quickstart", "--set", "sweep=null", *options)
    status, out, err = run_command(capsys, *command)
    assert (status, "error" in err) == (0, False)
    assumed = sum(one.status == "assumed" and not key.startswith("inference.")
                  for name in DEVICES for key, one in sourced(device(name)))  # fmt: skip
    (told,) = re.findall(r"(\d+) numbers are assumed, of device orange-pi-5, device pixel-7", out)
    status, out, _ = run_command(capsys, *command, "--json")
    (found,) = json.loads(out)["profiles"]
    links = sum(line.count(",") + 1 for line in found["assumptions"] if re.match("link .*assumed", line))
    assert int(told) == assumed + links
    for row in found["prices"]:
        assert row["fits"]
        assert row["intervals"]["joules"]["low"] < row["joules"] < row["intervals"]["joules"]["high"]
    assert [bool(row["battery_share"]) for row in found["prices"]] == [False, True]


def test_they_are_shown_with_what_is_assumed(capsys):
    """By title; each number by its status, and where those that the file leaves out are from."""
    name, like = "orange-pi-5", "raspberry-pi-5"
    assert re.search(rf"{name} +│ Orange Pi 5, 8 GB", run_command(capsys, "list", "devices")[1])
    status, out, _ = run_command(capsys, "show", "device", name)
    words = " ".join(re.sub("[│┃]", " ", out).split())
    count = len(dict(sourced(device(name))))
    assert (status, f"{count - 1} of {count} numbers are assumed" in words) == (0, True)
    assert words.count("taken from") == count - 3
    assert f"edgefl show device {like}" in words
