"""Every device, profile and scenario file: it loads, names its sources, and runs on the clock alone."""

from __future__ import annotations

import re

import pytest
from plans import cost, kernel

from edgefl.core import catalogue
from edgefl.core.cost import OP_CLASSES, Work
from edgefl.core.price import Pricer
from edgefl.core.units import parse
from edgefl.planning.fleets import device, profile
from edgefl.runs import drafts, run

DEVICES = tuple(catalogue.entries("devices"))
PROFILES = tuple(catalogue.entries("profiles"))
SCENARIOS = tuple(catalogue.entries("scenarios"))

JOB = cost(Work.of([kernel(kind, 10**6, 10**6) for kind in OP_CLASSES]), down=10**6, up=10**6)

# How much a status claims; no file may claim more for a number than the survey of sources that it came from.
CLAIMS = ("unknown", "assumed", "derived", "measured")

# name: (value, the most that may be claimed); the survey's memory column has no standing of its own.
SURVEY = {
    # Raspberry Pi 4B: 57.6 derived; 2.74 memcpy, 4096, 1.6 and 7.2 verified; 0.11 verified, of a derived peak
    "raspberry-pi-4b": {
        "peak": ("57.6 GFLOP/s", "derived"),
        "efficiency.dense": (0.11, "derived"),
        "efficiency.depthwise": (0.022, "assumed"),
        "memory_bandwidth": ("2.74 GB/s", "measured"),
        "memory": ("4096 MiB", "measured"),
        "power.idle": ("1.6 W", "measured"),
        "power.active": ("7.2 W", "measured"),
    },
    # Raspberry Pi 5: 153.6, 4.81 memcpy, 8192, 2.8 and 13.8 verified; no training measurement
    "raspberry-pi-5": {
        "peak": ("153.6 GFLOP/s", "measured"),
        "efficiency.dense": (0.11, "assumed"),
        "efficiency.depthwise": (0.022, "assumed"),
        "memory_bandwidth": ("4.81 GB/s", "measured"),
        "memory": ("8192 MiB", "measured"),
        "power.idle": ("2.8 W", "measured"),
        "power.active": ("13.8 W", "measured"),
    },
    # Raspberry Pi Zero 2 W: 32 recalled; 0.59 memcpy, 512, 1.2 and 2.1 verified; no training measurement
    "raspberry-pi-zero-2w": {
        "peak": ("32 GFLOP/s", "assumed"),
        "efficiency.dense": (0.11, "assumed"),
        "efficiency.depthwise": (0.022, "assumed"),
        "memory_bandwidth": ("0.59 GB/s", "measured"),
        "memory": ("512 MiB", "measured"),
        "power.idle": ("1.2 W", "measured"),
        "power.active": ("2.1 W", "measured"),
    },
    # Jetson Nano 4GB: 235.9 derived; 25.6, 4096 and 10 verified; idle empty; training table not found
    "jetson-nano": {
        "peak": ("235.9 GFLOP/s", "derived"),
        "efficiency.dense": (0.11, "assumed"),
        "memory_bandwidth": ("25.6 GB/s", "measured"),
        "memory": ("4096 MiB", "measured"),
        "power.idle": (None, "unknown"),
        "power.active": ("10 W", "measured"),
    },
    # Laptop CPU (Framework 13 AMD): 178 derived (achieved, not peak); 26.6 memcpy, 2.7 and 41.6 verified
    "laptop-cpu": {
        "peak": ("178 GFLOP/s", "derived"),
        "efficiency.dense": (0.5, "assumed"),
        "memory_bandwidth": ("26.6 GB/s", "measured"),
        "memory": ("16384 MiB", "assumed"),
        "power.idle": ("2.7 W", "measured"),
        "power.active": ("41.6 W", "measured"),
    },
    # Phone class low/mid/high (FLASH): effective 0.62/1.73/5.70 GFLOP/s, if a verified batch is 10 samples
    **{
        name: {"peak": (peak, "assumed"), "power.idle": (None, "unknown"), "power.active": (None, "unknown")}
        for name, peak in (
            ("phone-low", "0.62 GFLOP/s"),
            ("phone-mid", "1.73 GFLOP/s"),
            ("phone-high", "5.70 GFLOP/s"),
        )
    },
    # VC707 systolic 32x64@100MHz: 409.6 derived; 12.8 from verified 1600MT/s x 64b; 1024
    "vc707-systolic": {
        "peak": ("409.6 GFLOP/s", "derived"),
        "efficiency.depthwise": (1 / 64, "derived"),
        "memory_bandwidth": ("12.8 GB/s", "derived"),
        "memory": ("1024 MiB", "measured"),
        "power.idle": (None, "unknown"),
        "power.active": (None, "unknown"),
    },
}

# link: down, up, round trip; rates verified, round trips recalled
LINKS = {
    "mobile-4g": ("13 Mbit/s", "6 Mbit/s", "70 ms"),
    "mobile-5g": ("166 Mbit/s", "21.1 Mbit/s", "25 ms"),
    "wifi-pi4": ("108 Mbit/s", "108 Mbit/s", "5 ms"),
    "wifi-pi5": ("186 Mbit/s", "186 Mbit/s", "5 ms"),
    "ethernet": ("940 Mbit/s", "940 Mbit/s", "1 ms"),
}


@pytest.mark.parametrize("name", DEVICES)
def test_every_number_of_a_device_has_a_standing_and_a_source(name):
    """A device file loads; each number says measured, derived, assumed or unknown, and a source in words."""
    one = device(name)
    assert len(dict(one.numbers())) == 10
    for number, known in one.numbers():
        assert re.search(r"[a-z]{3}", known.source), f"{number} has no source"
        assert (known.value is None) == (known.status == "unknown"), number
        # A guess says that it is one, or from where it was taken; a measurement never does.
        guessed = re.search(
            r"\b(recalled|taken|assum\w+|no measurement|not measured|not stated)\b", known.source
        )
        assert not (guessed and known.status == "measured"), number


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_agrees_with_the_survey(name):
    """Numbers are those of the survey of sources, and none claims more than the survey does."""
    if name not in SURVEY:
        pytest.skip(f"the survey has no {name}")
    numbers = dict(device(name).numbers())
    for number, (value, most) in SURVEY[name].items():
        known = numbers[number]
        expected = parse(value, _dimension(value)) if isinstance(value, str) else value
        assert known.value == pytest.approx(expected), number
        assert CLAIMS.index(known.status) <= CLAIMS.index(most), f"{number} claims to be {known.status}"


def _dimension(text):
    units = {
        "FLOP/s": "operation rate",
        "B/s": "byte rate",
        "W": "power",
        "bit/s": "bit rate",
        "s": "time",
        "B": "bytes",
    }
    unit = text.split()[1]
    return next(dimension for end, dimension in units.items() if unit.endswith(end))


def test_the_survey_names_shipped_devices():
    """No row above is of a device that has gone."""
    assert set(SURVEY) <= set(DEVICES)


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_can_be_priced(name):
    """Each member's device exists and prices a job behind its link; energy is known where its numbers are."""
    fleet = profile(name)
    for member in fleet.members:
        board, link = device(member.device), fleet.links[member.link]
        price = Pricer(member.device, board).price(JOB, link)
        assert price.seconds > 0
        powers = (board.power.idle.value, board.power.active.value, link.radio.value)
        assert (price.joules is None) == (None in powers)


@pytest.mark.parametrize("name", PROFILES)
def test_every_number_of_a_link_has_a_standing_and_a_source(name):
    """Rates, latencies and radios say where they are from; surveyed ones agree with the survey."""
    for key, link in profile(name).links.items():
        for known in (link.down, link.up, link.latency, link.radio):
            assert re.search(r"[a-z]{3}", known.source)
        if key in LINKS:
            down, up, latency = LINKS[key]
            assert link.down.value == parse(down, "bit rate")
            assert link.up.value == parse(up, "bit rate")
            assert link.latency.value == pytest.approx(parse(latency, "time"))
            # The survey recalls every round trip and radio.
            assert link.latency.status == "assumed"
            assert link.radio.status in {"assumed", "unknown"}


def test_shipped_fleets_have_a_title_and_the_stress_test_differs_in_its_stragglers_alone():
    """The heavy-tailed home lab is the home lab but for title, notes and slowdown."""
    plain, heavy = (profile(name).model_dump() for name in ("home-lab", "home-lab-heavy-tail"))
    assert {key for key in plain if plain[key] != heavy[key]} == {"title", "notes", "slowdown"}
    assert all(profile(name).title for name in PROFILES)


def test_the_quickstart_fleet_knows_its_energy():
    """The fleet that new users meet has at least four kinds of device, and every number of them is known."""
    fleet = profile("home-lab")
    kinds = {member.device for member in fleet.members}
    assert len(kinds) >= 4
    assert all(device(kind).unknown == [] for kind in kinds)
    assert all(link.radio.value is not None for link in fleet.links.values())


def _apart(name):
    """A scenario's runs; one of those that differ in rate, seed or name alone, since they cost the same."""
    found = {}
    for draft in drafts(name, ["server.rounds=1"]):
        settings = draft.scenario.resolved()
        lr, seed = settings["local"]["optimizer"].pop("lr"), settings.pop("seed")
        found.setdefault(repr(settings), {**settings, "seed": seed, "name": draft.scenario.name})
        settings["local"]["optimizer"]["lr"] = lr
    return list(found.values())


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_runs_on_the_clock_alone(name, tmp_path, monkeypatch):
    """Each run loads, and each kind of run plans and dry-runs without any data file."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing here"))
    for index, settings in enumerate(_apart(name)):
        out = tmp_path / str(index)
        result = run(settings, engine="null", download=False, out=out)
        (one,) = result.runs
        assert (one.status, one.reason) == ("done", "")
        events = one.table("events")
        assert {"dispatched", "received", "worked", "arrived", "merged", "evaluated"} <= {
            row["kind"] for row in events
        }
        worked = [row for row in events if row["kind"] == "worked"]
        assert any(row["flops"] for row in worked)
        assert all(row["seconds"] > 0 for row in worked if row["flops"])
