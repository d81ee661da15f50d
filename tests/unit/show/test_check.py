"""Profiles, and what dry runs and comparisons say of what cannot be known; see also golden/results."""

import json

import pytest
from commands import shown
from compared import every

from edgefl.analysis.values import Value
from edgefl.core.units import show_joules, show_seconds
from edgefl.planning.learning import DataAccess
from edgefl.planning.profile import profile
from edgefl.runs.dry import dry_run, overview
from edgefl.runs.group import drafts
from edgefl.show.check import dry_runs, overviews
from edgefl.show.profile import profile as tables
from edgefl.show.values import cell

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
_SOURCE = {"status": "assumed", "source": "test"}
LINK = {
    "title": "a cable of which all is known",
    "down": {"value": "10 Mbit/s", **_SOURCE},
    "up": {"value": "10 Mbit/s", **_SOURCE},
    "latency": {"value": "1 ms", **_SOURCE},
    "radio": {"value": {"base": "1 W"}, **_SOURCE},
}
SCENARIO = {
    "task": {"dataset": "digits", "clients": 10},
    "model": {"name": "mlp", "hidden": [400]},
    "method": "fedavg",
    "local": {"batch_size": 16, "epochs": 1},
    "fleet": {"members": [{"device": "raspberry-pi-4b", "link": "cable"}], "links": {"cable": LINK}},
}


@pytest.fixture(autouse=True)
def boards(tmp_path, monkeypatch):
    """A device of which some numbers are known by their bounds alone, and one without a launch overhead."""
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "own-board.yaml").write_text(BOARD)
    text = BOARD.replace("value: 10 us", "value: 0 s").replace("high: 15 W", "value: 5 W")
    text = text.replace("low: 0.25, value: 0.5, high: 1.0", "value: 0.5")
    (tmp_path / "devices" / "uncounted.yaml").write_text(text)
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))


@pytest.mark.parametrize("policy", ["sync", "{name: fedasync, concurrency: 4}"])
def test_a_run_without_launch_overheads_is_a_lower_bound(policy):
    """Its times and energies are marked in check and compare alike, whatever its policy."""
    fleet = {**SCENARIO["fleet"], "members": [{"device": "uncounted", "link": "cable"}]}
    settings = ["sweep=null", f"fleet={json.dumps(fleet)}", f"server.policy={policy}"]
    (run,) = dry_run("quickstart", settings)
    found = run.summary
    assert (found.virtual_s_between.high, found.joules_between.high) == (None, None)
    for table in (dry_runs([run]), every([found])):
        text = shown(table, 200)
        assert f">{show_seconds(found.virtual_s)}" in text
        assert "> launch overhead unknown; time is a lower bound" in text
        assert show_joules(found.joules_between.low) in text
    scenario = overview("quickstart", settings, DataAccess())
    assert shown(overviews([scenario]), 200).count("at least") == 2


def test_a_profile_knows_a_day_where_the_policy_has_a_pace():
    """Merges an hour apart, of 4 of 8 phones: each does 12 jobs a day. Other policies take what jobs take."""
    settings = ["sweep=null", "task.clients=8", PHONE, "server.participants=4"]
    (paced,) = drafts("quickstart", [*settings, "server.policy={name: semi-sync, interval: 1 h}"])
    found = profile(paced)
    assert found.exchanges[0]["jobs_per_day"] == 12
    table = shown(tables(found), 200)
    heads = next(line for line in table.splitlines() if "of battery" in line)
    *_, figures = (line for line in table.splitlines() if "pixel-6" in line and "│" in line)
    assert heads.split("┃")[-1].strip() == "a day"
    share = next(row["battery_share"] for row in found.prices if row["device"] == "pixel-6")
    assert figures.split("│")[-1].strip().startswith(cell(Value(12 * share), "battery"))
    (other,) = drafts("quickstart", settings)
    assert "jobs_per_day" not in profile(other).exchanges[0]
    assert "a day" not in shown(tables(profile(other)), 200)
