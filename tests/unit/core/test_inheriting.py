"""Devices that are like others, and numbers without a source."""

from __future__ import annotations

import pytest

from edgefl.core.errors import UserError
from edgefl.core.notes import note
from edgefl.core.sourced import sourced
from edgefl.planning.fleets import device, link


@pytest.fixture
def own_devices(tmp_path, monkeypatch):
    """Writes device files; returns their folder."""
    folder = tmp_path / "devices"
    folder.mkdir()
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    note.cache_clear()

    def write(**files):
        for name, text in files.items():
            (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        return folder

    return write


def test_a_device_states_what_differs(own_devices):
    """Its own numbers stand as they are; each other is the parent's, assumed, with its name and source."""
    own = "dense: {value: 0.3, status: measured, source: timed here}"
    own_devices(mine=f"like: raspberry-pi-5\nefficiency: {{{own}}}\n")
    mine, parent = device("mine"), device("raspberry-pi-5")
    assert (mine.title, mine.category, mine.notes) == ("mine", "sbc", "")
    numbers, others = dict(sourced(mine)), dict(sourced(parent))
    own = numbers.pop("efficiency.dense")
    assert (own.value, own.low, own.status, own.source) == (0.3, None, "measured", "timed here")
    assert numbers.keys() == others.keys() - {"efficiency.dense"}
    for key, number in numbers.items():
        source = f"taken from raspberry-pi-5: {others[key].source}"
        assert number == others[key].model_copy(update={"status": "assumed", "source": source})


def test_numbers_are_named_after_the_file_that_has_them(own_devices):
    """Through two files, of which the nearer wins; what is unknown there stays unknown here."""
    unknown = "power: {active: {status: unknown, source: not measured}, single_core: null}"
    own_devices(one=f"like: stm32f746\n{unknown}\n", two="like: one\nmemory: 500 KiB\n")
    numbers = dict(sourced(device("two")))
    assert numbers["memory"].source == "given without a source in two.yaml"
    assert numbers["power.active"].status == "unknown"
    assert numbers["power.active"].source == "taken from one: not measured"
    assert numbers["peak.fp32"].source.startswith("taken from stm32f746: ")


def test_null_takes_a_key_away(own_devices):
    """A battery, or one number type; a battery's number alone is its capacity."""
    one_type = "like: raspberry-pi-5\npeak: {int8: null}\nefficiency_in: null\ninference: null\n"
    pixel = "like: pixel-6\nbattery: "
    own_devices(one_type=one_type, wired=f"{pixel}null\n", large=f"{pixel}20 Wh\n")
    assert device("one_type").dtypes(inference=True) == ("fp32",)
    assert device("wired").battery is None
    large, parent = device("large").battery, device("pixel-6").battery
    assert (large.capacity_j, large.fill_w) == (72_000, parent.fill_w)


@pytest.mark.parametrize(
    ("text", "what", "where", "hint"),
    [
        ("like: raspberry-pi-55\n", "unknown device 'raspberry-pi-55'", "mine.yaml:1", "'raspberry-pi-5'"),
        ("like: mine\n", "devices inherit from each other in a cycle: mine -> mine", "mine.yaml", ""),
        ("like: pixel-6\nmemori: 3 GB\n", "unknown key 'memori'", "mine.yaml:2", "did you mean 'memory'"),
        ("like: pixel-6\nmemory: 3\n", "write a number and a unit", "mine.yaml:2", "left out are pixel-6's"),
        ("like: pixel-6\npower: {active: 1 mW}\n", "is below", "mine.yaml:2", "left out are pixel-6's; null"),
        ("title: x\n", "'category' is missing", "mine.yaml", ""),
    ],
)
def test_a_mistake_is_placed_in_the_own_file(own_devices, text, what, where, hint):
    """With the line, and what the rest is from."""
    own_devices(mine=text)
    with pytest.raises(UserError) as caught:
        device("mine")
    assert what in str(caught.value)
    assert where in caught.value.where
    assert hint in caught.value.hint


def test_numbers_alone_are_assumed_with_one_note(own_devices, caplog):
    """The note says which, and how the first would be stated; bounds alone are numbers too."""
    text = "power: {idle: 1.1 W, active: {high: 9 W}}\nbackward_overhead: 0\nmemory: 2 GB\n"
    folder = own_devices(mine=f"like: raspberry-pi-4b\n{text}")
    numbers = dict(sourced(device("mine")))
    assert (numbers["power.idle"].value, numbers["power.active"].high) == (1.1, 9)
    for key in ("memory", "power.idle", "power.active", "backward_overhead"):
        assert numbers[key].status == "assumed"
        assert numbers[key].source == "given without a source in mine.yaml"
    (told,) = [record.getMessage() for record in caplog.records]
    assert told == (
        "mine.yaml: 4 numbers without a source count as assumed (memory, power.idle, power.active, ...); "
        "state one as memory: {value: 2 GB, status: measured, source: ...}"
    )
    (folder.parent / "profiles" / "links").mkdir(parents=True)
    text = "title: t\ndown: 1 Mbit/s\nup: 1 Mbit/s\nlatency: 3 ms\nradio: {status: unknown, source: s}\n"
    (folder.parent / "profiles" / "links" / "wire.yaml").write_text(text, encoding="utf-8")
    assert link("wire").up.source == "given without a source in wire.yaml"
    assert link("wire").model_fields_set == {"title", "down", "up", "latency", "radio"}
