"""Figures with their bounds, as cells and in a profile's tables and document."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from commands import shown
from compared import every

from edgefl.analysis.reached import Evaluated, Reached, Target, Waste
from edgefl.core.corners import Interval
from edgefl.core.documents import document
from edgefl.core.units import show_joules, show_seconds
from edgefl.planning.costs import within
from edgefl.planning.profile import ProfileOptions, profile
from edgefl.runs import drafts
from edgefl.runs.dry import dry_run
from edgefl.runs.overview import overview
from edgefl.show.comparison import comparison, dry_runs
from edgefl.show.intervals import between
from edgefl.show.overviews import overviews
from edgefl.show.profile import profile as tables
from edgefl.show.summary import Accuracy

_AT = "status: assumed, source: for this test"
_SOURCE = {"status": "assumed", "source": "for this test"}
BOARD = f"""
title: a board
category: sbc
peak: {{fp32: {{value: 10 GFLOP/s, {_AT}}}}}
efficiency:
  dense: {{low: 0.25, value: 0.5, high: 1.0, {_AT}}}
  depthwise: {{value: 0.1, {_AT}}}
  elementwise: {{value: 0.5, {_AT}}}
memory_bandwidth: {{value: 1 GB/s, {_AT}}}
launch_overhead: {{value: 10 us, {_AT}}}
memory: {{value: 1 GB, {_AT}}}
reserved_memory: {{value: 0 B, {_AT}}}
power:
  idle: {{status: unknown, source: not found}}
  active: {{high: 15 W, {_AT}}}
"""
SCENARIO = {
    "task": {"dataset": "digits", "clients": 10},
    "model": {"name": "mlp", "hidden": [400]},
    "method": "fedavg",
    "local": {"batch_size": 16, "epochs": 1},
    "fleet": {
        "members": [{"device": "raspberry-pi-4b", "link": "cable"}],
        "links": {
            "cable": {
                "title": "a cable of which all is known",
                "down": {"value": "10 Mbit/s", "status": "assumed", "source": "test"},
                "up": {"value": "10 Mbit/s", "status": "assumed", "source": "test"},
                "latency": {"value": "1 ms", "status": "assumed", "source": "test"},
                "radio": {"value": {"base": "1 W"}, "status": "assumed", "source": "test"},
            }
        },
    },
}

NONE = Waste(0, 0.0, 0.0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for devices."""
    (tmp_path / "devices").mkdir()
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    return tmp_path / "devices"


@pytest.fixture
def board(folder):
    """A device of which some numbers are known by their bounds alone."""
    (folder / "own-board.yaml").write_text(BOARD, encoding="utf-8")
    return "own-board"


@pytest.fixture
def uncounted(folder):
    """A device without a launch overhead."""
    text = BOARD.replace("value: 10 us", "value: 0 s").replace("high: 15 W", "value: 5 W")
    (folder / "uncounted.yaml").write_text(text.replace("low: 0.25, value: 0.5, high: 1.0", "value: 0.5"))
    return "uncounted"


def fleet(device):
    """Settings of a fleet of one device."""
    members = [{"device": device, "link": "cable"}]
    return [f"fleet={json.dumps({**SCENARIO['fleet'], 'members': members})}", "sweep=null"]


@pytest.mark.parametrize(
    ("value", "bounds", "text"),
    [
        (12.0, None, "12 J"),
        (None, None, "unknown"),
        (12.0, (8.0, 21.0), "12 J (8 to 21)"),
        (12.0, (12.0, 12.0), "12 J"),
        (12.0, (12.001, 12.002), "12 J"),
        (12.0, (12.0, 21.0), "12 J (at most 21 J)"),
        (12.0, (12.0, None), ">12 J"),
        (12.0, (8.0, None), "12 J (at least 8 J)"),
        (1200.0, (800.0, 2100.0), "1.2 kJ (800 J to 2.1 kJ)"),
        (120.0, (80.0, 2100.0), "120 J (80 J to 2.1 kJ)"),
        (None, (0.0, 25.0), "at most 25 J"),
        (None, (8.0, 25.0), "8 to 25 J"),
        (None, (8.0, 2500.0), "8 J to 2.5 kJ"),
        (None, (25.0, 25.0), "25 J"),
        (None, (8.0, None), "at least 8 J"),
        (None, (0.0, None), "unknown"),
    ],
)
def test_a_figure_and_its_bounds_in_few_characters(value, bounds, text):
    """The unit once where all have the same; a bound that is missing, or equal as shown, is not repeated."""
    assert between(show_joules, value, bounds and Interval(*bounds)) == text


def test_hours_and_minutes_keep_their_units():
    """A duration in two units is never cut."""
    assert between(show_seconds, 200.0, Interval(100.0, 300.0)) == "3 min 20 s (1 min 40 s to 5 min 00 s)"


@pytest.mark.parametrize("width", [60, 100, 200])
def test_a_profile_bounds_what_it_cannot_know(board, width):
    """An efficiency between 0.25 and 1 bounds the time; 15 W at most bound the energy, its phases too."""
    options = ProfileOptions(devices=(board,), layers=True)
    found = profile(drafts(SCENARIO)[0], options)
    price = next(row for row in found.prices if row["exchange"] == "train")
    work_s, (fast, slow) = price["work_s"], price["intervals"]["work_s"]
    # Half the efficiency takes what computing bounds once more, and at most everything.
    assert fast < work_s < work_s + price["compute_bound_s"] <= slow < 2 * work_s
    low, high = price["intervals"]["joules"]
    assert price["joules"] is None
    radio = price["receive_j"] + price["transmit_j"] + price["tail_j"]
    assert (low, high) == pytest.approx((radio, radio + 15.0 * (slow + price["down_s"] + price["up_s"])))
    text = shown(tables(found), width)
    assert between(show_seconds, work_s, price["intervals"]["work_s"]) in text
    assert between(show_joules, None, price["intervals"]["joules"]) in text
    assert "at most" in text
    assert max(map(len, text.splitlines())) <= width
    written = json.loads(json.dumps(document(found)))["prices"][0]["intervals"]
    assert written["work_s"] == {"low": fast, "high": slow}
    assert written["joules"] == {"low": low, "high": high}


def test_layers_add_up_at_both_ends(board):
    """The layers' and other work's bounds are together the exchange's."""
    found = profile(drafts(SCENARIO)[0], ProfileOptions(devices=(board,), layers=True))
    (row,) = found.prices
    for end in (0, 1):
        for name in ("seconds", "joules"):
            parts = sum(within(part, name)[end] for part in found.part_prices)
            assert parts == pytest.approx(within(row, name)[end])
        for part in (part for part in found.part_prices if part["what"] == "layer"):
            roles = (within(part, f"{role}_s")[end] for role in ("forward", "grad_input", "grad_weight"))
            assert sum(roles) == pytest.approx(within(part, "seconds")[end])


def test_a_time_without_launch_overhead_is_marked(uncounted):
    """It is a lower bound, and so is the energy: not to be ranked among those with overheads."""
    options = ProfileOptions(devices=(uncounted, "laptop-cpu"), layers=True)
    found = profile(drafts(SCENARIO)[0], options)
    launch = {row["device"]: row["launch"] for row in found.prices}
    assert launch == {uncounted: "none", "laptop-cpu": "assumed"}
    text = shown(tables(found), 200)
    lines = [line for line in text.splitlines() if " yes" in line]
    assert [">" in line for line in lines if uncounted in line] == [True]
    assert [">" in line for line in lines if "laptop-cpu" in line] == [False]
    assert f">{show_seconds(found.part_prices[0]['forward_s'])}" in text
    assert "> launch overhead unknown; time is a lower bound" in text


@pytest.mark.parametrize("policy", ["sync", "{name: fedasync, concurrency: 4}"])
def test_a_run_without_launch_overheads_is_a_lower_bound(uncounted, policy):
    """Its times and energies are marked in check, run and compare alike, whatever its policy."""
    (run,) = dry_run("quickstart", [*fleet(uncounted), f"server.policy={policy}"])
    found = run.summary
    assert (found.virtual_s_between.high, found.joules_between.high) == (None, None)
    for table in (dry_runs([run]), every([found])):
        text = shown(table, 200)
        assert f">{show_seconds(found.virtual_s)}" in text
        assert "> launch overhead unknown; time is a lower bound" in text
        assert show_joules(found.joules_between.low) in text
    scenario = overview("quickstart", [*fleet(uncounted), f"server.policy={policy}"])
    text = shown(overviews([scenario]), 200)
    assert scenario.lower_bounds
    assert " >" in text
    assert "at least" in text


@pytest.mark.parametrize("policy", ["sync", "{name: fedasync, concurrency: 4}"])
def test_a_check_counts_tails_until_the_run_ends(folder, policy):
    """With an upper bound alone, the least energy of a round is its energy, open tails included."""
    text = BOARD.replace("low: 0.25, value: 0.5, high: 1.0", "value: 0.5")
    text = text.replace("status: unknown, source: not found", f"value: 1 W, {_AT}")
    (folder / "own-board.yaml").write_text(text.replace("high: 15 W", "value: 5 W, high: 15 W"))
    radio = {"radio": {"value": {"base": "1 W", "tail": "1 W", "tail_time": "10 s"}, **_SOURCE}}
    cable = {**SCENARIO["fleet"]["links"]["cable"], **radio}
    own = {"members": [{"device": "own-board", "link": "cable"}], "links": {"cable": cable}}
    settings = [f"fleet={json.dumps(own)}", f"server.policy={policy}", "sweep=null"]
    found = overview("quickstart", settings)
    assert found.round_j_between.low == pytest.approx(found.round_j[0])
    assert found.round_j_between.high > found.round_j[1]


def test_a_target_has_bounds(board):
    """What it took to reach it, and until the last evaluation below, is bounded like the run."""
    (run,) = dry_run("quickstart", fleet(board))
    found = run.summary
    took = Evaluated(
        1.0, 3, 10, 20, found.energy, 0.5, NONE, t_s_between=Interval(0.5, 2.0), joules_between=None
    )
    reached = Reached(
        2.0,
        4,
        20,
        40,
        found.energy,
        0.9,
        NONE,
        took,
        t_s_between=Interval(1.0, 4.0),
        joules_between=Interval(3, 9),
    )
    scores = {"global": Accuracy(0.9, None, 4, None, None, None)}
    text = shown(every([replace(found, accuracy=scores, target=Target(0.8, reached, None))]), 200)
    assert "2 s (1 to 4)" in text
    assert "1 s (500 ms to 2 s)" in text
    assert "3 to 9 J" in text


def test_energies_of_some_clients_stand_beside_the_bounds_of_all(board):
    """A sum over a part of the clients is no figure of all of them."""
    members = f"[{{device: {board}, link: ethernet}}, {{device: raspberry-pi-4b, link: ethernet}}]"
    (run,) = dry_run("quickstart", [f"fleet={{members: {members}}}", "sweep=null"])
    found = run.summary
    known, clients = found.energy.energy_known, found.energy.energy_clients
    assert 0 < known < clients
    assert found.energy.joules < found.joules_between.high
    for table in (every([found]), comparison([found]), dry_runs([run])):
        text = shown(table, 300)
        assert f"{show_joules(found.energy.joules)} ({known} of {clients} clients)" in text
        assert f" {between(show_joules, None, found.joules_between)}" in text
        assert text.count(show_joules(found.energy.joules)) == 1


def test_the_energy_of_every_shipped_device_is_bounded():
    """Of all that have a price, on the network of each fleet: no energy is open above."""
    for link in (None, "4g"):
        found = profile(drafts(SCENARIO)[0], ProfileOptions(devices=("all",), link=link))
        rows = found.prices
        priced = [row for row in rows if not row["unknown"]]
        assert len(priced) > 20
        assert [row["device"] for row in priced if within(row, "joules").high is None] == []
        infers = {"coral-edge-tpu", "zcu102-dpu", "zcu104-dpu", "pynq-z2-dpu"}
        assert {row["device"] for row in rows if row["unknown"]} <= infers
