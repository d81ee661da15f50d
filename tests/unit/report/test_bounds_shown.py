"""Figures with their bounds, as cells and in a profile's tables and document."""

from __future__ import annotations

import json

import pytest
from commands import shown

from edgefl.core.corners import Interval
from edgefl.core.documents import document
from edgefl.core.units import show_joules, show_seconds
from edgefl.planning.profile import ProfileOptions, profile
from edgefl.report import costs
from edgefl.report.intervals import between
from edgefl.runs import drafts

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
    "fleet": "home-lab",
}


@pytest.fixture
def board(tmp_path, monkeypatch):
    """A device of which some numbers are known by their bounds alone."""
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "own-board.yaml").write_text(BOARD, encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    return "own-board"


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
    work = next(one for one in found.exchanges if one.exchange == "train")
    price = work.devices[0].price
    fast, slow = price.intervals.compute_s
    # Half the efficiency takes what computing bounds once more, and at most everything.
    assert fast < price.compute_s < price.compute_s + price.bounds.compute_s <= slow < 2 * price.compute_s
    low, high = price.intervals.joules
    assert price.joules is None
    radio = price.energy.receive_j + price.energy.transmit_j + price.energy.tail_j
    assert (low, high) == pytest.approx((radio, radio + 15.0 * (slow + price.down_s + price.up_s)))
    text = shown(costs.profile(found), width)
    assert between(show_seconds, price.compute_s, price.intervals.compute_s) in text
    assert between(show_joules, None, price.intervals.joules) in text
    assert "at most" in text
    assert max(map(len, text.splitlines())) <= width
    written = json.loads(json.dumps(document(found)))["exchanges"][0]["devices"][0]["intervals"]
    assert written["compute_s"] == {"low": fast, "high": slow}
    assert written["joules"] == {"low": low, "high": high}


def test_layers_add_up_at_both_ends(board):
    """The layers' and other work's bounds are together the exchange's."""
    found = profile(drafts(SCENARIO)[0], ProfileOptions(devices=(board,), layers=True))
    row = next(one for one in found.exchanges if one.exchange == "train").devices[0]
    parts = [*row.by_layer.layers, *row.by_layer.others]
    for end in (0, 1):
        seconds = sum(one.intervals[key][end] for one in parts for key in one.intervals if key != "joules")
        joules = sum(one.intervals["joules"][end] for one in parts)
        assert seconds == pytest.approx(row.price.seconds_between[end])
        assert joules == pytest.approx(row.price.joules_between[end])
