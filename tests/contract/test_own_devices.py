"""Devices from data sheets: a board, a phone and a microcontroller in a few lines each, with ``like``."""

from __future__ import annotations

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
memory: 8 GiB
battery: 16.8 Wh  # 4355 mAh at 3.85 V
""",
    "stm32h743": """
title: STM32H743 (Cortex-M7, 480 MHz)
like: stm32f746
peak: {fp32: 480 MFLOP/s, int8: 1920 MFLOP/s}  # 1 and 4 operations a cycle, as the STM32F746's
memory_bandwidth: 1.92 GB/s  # 64 bit at 240 MHz
memory: 864 KiB
""",
}
# How many numbers each file states, and how many of them have a source.
STATED = {"orange-pi-5": (3, 1), "pixel-7": (3, 0), "stm32h743": (4, 0)}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working directory with the three files."""
    monkeypatch.delenv("EDGEFL_PATH", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "devices").mkdir()
    for name, text in DEVICES.items():
        assert len(text.strip().splitlines()) < 10
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
    assert [bool(row["battery_share"]) for row in found["prices"]] == [False, True, False]


@pytest.mark.parametrize("name", DEVICES)
def test_they_are_shown_with_what_is_assumed(capsys, monkeypatch, name):
    """In a list by title; each number by its status, and where those that the file leaves out are from."""
    monkeypatch.setenv("COLUMNS", "80")
    title = re.search("title: (.*)", DEVICES[name])[1]
    _, out, _ = run_command(capsys, "list", "devices")
    assert re.search(rf"{name} +│ {re.escape(title)}", out)
    like = re.search("like: (.*)", DEVICES[name])[1]
    status, out, _ = run_command(capsys, "show", "device", name)
    assert status == 0
    words = " ".join(re.sub("[│┃]", " ", out).split())
    stated, known = STATED[name]
    count = len(dict(sourced(device(name))))
    assert f"{count - known} of {count} numbers are assumed" in words
    assert words.count("taken from") == count - stated
    assert f"edgefl show device {like}" in words
    assert max(map(len, out.splitlines()[1:])) <= 80
