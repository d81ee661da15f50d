"""Dry runs and profiles, with the bounds of what they cannot know."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest
from commands import shown
from compared import cells, comparison, every, tables_of
from toys import TOYS
from unfinished import UNPOWERED

from edgefl.analysis.values import Value
from edgefl.core.documents import document
from edgefl.core.units import show_joules, show_seconds
from edgefl.planning.costs import within
from edgefl.planning.learning import DataAccess
from edgefl.planning.profile import ProfileOptions, profile
from edgefl.runs import drafts
from edgefl.runs.dry import dry_run, overview
from edgefl.show.check import dry_runs, overviews
from edgefl.show.profile import profile as tables
from edgefl.show.table import UNKNOWN
from edgefl.show.values import between, cell

PHONE = "fleet={members: [{device: pixel-6, link: ethernet}, {device: laptop-cpu, link: ethernet}]}"
_AT = "status: assumed, source: for this test"
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


def dry(*settings):
    """A dry run of quickstart."""
    (found,) = dry_run("quickstart", ["sweep=null", *settings])
    return found


def below(view):
    """The rows of the tables below the first one, by label."""
    return {
        label: texts
        for place in range(1, len(tables_of(view)))
        for label, texts in cells(view, place).items()
    }


def test_a_dry_run_shows_waste_below_its_row(monkeypatch):
    """Only of runs that wasted something; no line is wider than the terminal."""
    monkeypatch.setenv("EDGEFL_PATH", str(TOYS))
    clean, wasteful = dry("server.policy=sync"), dry("server.policy=toy")
    assert not below(dry_runs([clean]))
    found = below(dry_runs([clean, wasteful]))
    assert {"wasted bytes", "wasted work", "wasted energy", "wasted client time", "jobs late"} <= found.keys()
    assert {len(texts) for texts in found.values()} == {1}
    for width in (80, 100):
        assert max(map(len, shown(dry_runs([wasteful] * 4), width).splitlines())) <= width


@pytest.mark.usefixtures("unfinished")
def test_a_wasted_energy_that_nobody_knows_is_unknown(monkeypatch):
    """As the energy of all clients is."""
    monkeypatch.setenv("EDGEFL_PATH", os.pathsep.join([os.environ["EDGEFL_PATH"], str(TOYS)]))
    found = dry("server.policy=toy", f"fleet={{members: [{{device: {UNPOWERED}, link: 4g}}]}}").summary
    assert found.wasted.joules is None
    assert cells(every([found]))["wasted energy"] == [UNKNOWN]


@pytest.mark.parametrize("policy", ["sync", "{name: fedasync, concurrency: 4}"])
def test_a_run_without_launch_overheads_is_a_lower_bound(uncounted, policy):
    """Its times and energies are marked in check, run and compare alike, whatever its policy."""
    run = dry(*fleet(uncounted), f"server.policy={policy}")
    found = run.summary
    assert (found.virtual_s_between.high, found.joules_between.high) == (None, None)
    for table in (dry_runs([run]), every([found])):
        text = shown(table, 200)
        assert f">{show_seconds(found.virtual_s)}" in text
        assert "> launch overhead unknown; time is a lower bound" in text
        assert show_joules(found.joules_between.low) in text
    scenario = overview("quickstart", [*fleet(uncounted), f"server.policy={policy}"], DataAccess())
    assert shown(overviews([scenario]), 200).count("at least") == 2


def test_energies_of_some_clients_stand_beside_the_bounds_of_all(board):
    """A sum over a part of the clients is no figure of all of them."""
    members = f"[{{device: {board}, link: ethernet}}, {{device: raspberry-pi-4b, link: ethernet}}]"
    run = dry(f"fleet={{members: {members}}}")
    found = run.summary
    known, clients = found.energy.energy_known, found.energy.energy_clients
    assert 0 < known < clients
    assert found.energy.joules < found.joules_between.high
    for table in (every([found]), comparison([found]), dry_runs([run])):
        text = shown(table, 300)
        assert f"{show_joules(found.energy.joules)} ({known} of {clients} clients)" in text
        assert f" {between(None, found.joules_between, 'J')}" in text
        assert text.count(show_joules(found.energy.joules)) == 1


def test_an_overview_has_the_lowest_and_the_highest_of_its_runs():
    """A row for each scenario."""
    one = overview("quickstart", ["sweep=null"], DataAccess())
    (run,) = one.runs
    other = replace(run, summary=replace(run.summary, bytes=2 * run.summary.bytes, virtual_s_between=None))
    (table,) = tables_of(overviews([one._replace(runs=[run, other])]))
    assert table.heads == ["scenario", "runs", "clients", "refused", "virtual time", "bytes", "energy"]
    ends = cell(Value(run.summary.bytes), "B"), cell(Value(other.summary.bytes), "B")
    assert table.rows[0][5] in {f"{ends[0]} to {ends[1]}", f"{ends[0].split()[0]} to {ends[1]}"}


def test_a_profile_knows_a_day_where_the_policy_has_a_pace():
    """Merges an hour apart, of 4 of 8 phones: each does 12 jobs a day. Other policies take what jobs take."""
    settings = ["sweep=null", "task.clients=8", PHONE, "server.participants=4"]
    (paced,) = drafts("quickstart", [*settings, "server.policy={name: semi-sync, interval: 1 h}"])
    found = profile(paced)
    assert found.exchanges[0]["jobs_per_day"] == 12
    table = shown(tables(profile(paced)), 200)
    heads = next(line for line in table.splitlines() if "of battery" in line)
    *_, figures = (line for line in table.splitlines() if "pixel-6" in line and "│" in line)
    assert heads.split("┃")[-1].strip() == "a day"
    share = next(row["battery_share"] for row in found.prices if row["device"] == "pixel-6")
    assert figures.split("│")[-1].strip().startswith(cell(Value(12 * share), "battery"))
    (other,) = drafts("quickstart", settings)
    assert "jobs_per_day" not in profile(other).exchanges[0]
    assert "a day" not in shown(tables(profile(other)), 200)


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
    text = shown(tables(found), 400)
    assert between(work_s, price["intervals"]["work_s"], "s") in text
    assert between(None, price["intervals"]["joules"], "J") in text
    assert "at most" in text
    assert max(map(len, shown(tables(found), width).splitlines())) <= width
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
