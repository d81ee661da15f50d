"""What commands print as tables is made in one place, whose laws are in test_table.py; costs of devices."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from commands import shown

from edgefl.planning.learning import DataAccess
from edgefl.planning.profile import ProfileOptions
from edgefl.planning.profile import profile as profile_run
from edgefl.runs import drafts
from edgefl.show import profile as costs


@cache
def profiles():
    """Two runs' costs on devices with and without prices, layer by layer."""
    options = ProfileOptions(("raspberry-pi-4b", "phone-mid", "raspberry-pi-zero-2w", "pixel-6"), layers=True)
    runs = drafts("quickstart", ["sweep={runs: [{name: fedavg, seed: 1}, {name: head, seed: 2}]}"])
    return [profile_run(draft, options, DataAccess(need="nothing")) for draft in runs]


SOURCES = sorted((Path(__file__).parents[3] / "edgefl").rglob("*.py"))


def test_markup_has_no_way_in():
    """Rich's tables are built in one place, but for grids, of texts; consoles say that texts are none."""
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        assert "from_markup" not in text, path
        assert "rich.panel" not in text, path
        assert path.name == "table.py" or "rich.rule" not in text, path
        if path.name != "table.py" and "rich.table" in text:
            assert not re.search(r"\bTable\(", text), path
            assert not re.search(r"add_row\((?!Text\()", text), path
        for call in re.findall(r"(?<!\w)Console\((.+)\)", text):
            assert "markup=False" in call, path


def test_an_overview_begins_with_bytes_and_memory():
    """What a client receives, sends and holds in a round of each run: the same as the exchanges' own."""
    lines = shown(costs.device_rounds(profiles()), 80).splitlines()
    assert lines[0].startswith("bytes of a client's round")
    assert [line.split("│")[0].strip() for line in lines[2:5]] == ["down", "up", "peak memory, in fp32"]
    assert [line.split("│")[1].strip() for line in lines[2:5]] == ["19.2 kB", "19.2 kB", "46.8 kB"]


def test_the_networks_of_devices_are_named():
    """The commonest first, then those of single devices."""
    options = ProfileOptions(("raspberry-pi-4b", "raspberry-pi-5", "stm32f746"))
    (draft,) = drafts("quickstart", ["sweep=null"])
    found = profile_run(draft, options, DataAccess(need="nothing"))
    assert costs.networks(found.prices) == "wifi-pi4; wifi-pi5 (raspberry-pi-5)"


def test_memory_that_is_many_times_too_small_is_a_multiple():
    """Not 293649.9%."""
    first = profiles()[0].prices[0]
    for share, text in ((9.99, "999.0%"), (2936.4, "2,936x")):
        row = {**first, "memory_share": share, "fits": False}
        assert text in shown(costs.profile(replace(profiles()[0], prices=[row])), 80)
