"""Perfetto's own trace processor reads a timeline's file as it was meant."""

from __future__ import annotations

import os

import pytest
from trace_processor import missing, reading
from traced import read_back

import edgefl

# What the processor could not make sense of.
_COMPLAINTS = "SELECT name, value FROM stats WHERE value > 0 AND severity != 'info'"
_SLICES = """
SELECT track.name AS track, slice.name, category, ts, dur, depth, EXTRACT_ARG(arg_set_id, 'debug.job') AS job,
  EXTRACT_ARG(arg_set_id, 'debug.device') AS device
FROM slice JOIN track ON slice.track_id = track.id
"""
_FLOWS = """
SELECT first.name AS first, second.name AS second, COUNT(*) AS count
FROM flow JOIN slice AS first ON slice_out = first.id JOIN slice AS second ON slice_in = second.id
GROUP BY first.name, second.name
"""
_COUNTERS = """
SELECT track.name, ts, value, unit
FROM counter JOIN counter_track AS track ON counter.track_id = track.id ORDER BY track.name, ts
"""


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """The file of a run with late jobs and clients that come and go."""
    folder = tmp_path_factory.mktemp("timeline")
    settings = {
        "sweep": None,
        "server": {"policy": {"name": "deadline", "seconds": "45 ms"}, "rounds": 4, "participants": 8},
        "fleet": {"like": "home-lab", "availability": {"name": "markov", "on": "80 ms", "off": "40 ms"}},
        "evaluate.every": 2,
    }
    result = edgefl.run("quickstart", overrides=settings, out=folder / "run", progress=False)
    return result.runs[0].timeline(folder / "run.pftrace").read_bytes()


@pytest.fixture(scope="module")
def processor(opened, traced):
    """It, after reading the file; skips where it is not installed."""
    if (why := missing()) and not os.environ.get("EDGEFL_BROWSER"):
        pytest.skip(why)
    with reading(opened, traced) as one:
        yield one


def test_nothing_is_lost_or_misunderstood(processor):
    """No error, no data loss, no slice that does not nest."""
    assert processor.query(_COMPLAINTS) == []


def test_slices_are_as_written(processor, traced):
    """Each with its track, name, category, time, depth and arguments; instants have no duration."""
    found = read_back(traced)
    assert {"merged", "late", "lost", "away"} <= {mark for one in found.slices for mark in one.categories}
    shown = (*found.slices, *found.instants)
    written = sorted(
        (one.track, one.from_ns, one.depth, 0 if one.to_ns is None else one.ns, one.name, *one.categories)
        for one in shown
    )
    rows = processor.query(_SLICES)
    columns = ("track", "ts", "depth", "dur", "name", "category")
    assert sorted(tuple(row[name] for name in columns) for row in rows) == written
    assert {row["job"]: row["device"] for row in rows if row["job"] is not None} == {
        one.arguments["job"]: one.arguments["device"] for one in shown if "job" in one.arguments
    }


def test_flows_lead_from_dispatches_through_jobs_to_merges(processor, traced):
    """As many as there are jobs, and as many as were merged."""
    found = read_back(traced)
    jobs = [one for one in found.slices if "job" in one.arguments]
    merged = [one for one in jobs if one.categories == ["merged"]]
    counts = {(row["first"], row["second"]): row["count"] for row in processor.query(_FLOWS)}
    assert sum(count for (first, _), count in counts.items() if first == "dispatch") == len(jobs)
    assert counts["train", "merge"] == len(merged) < len(jobs)
    assert sum(counts.values()) == len(jobs) + len(merged)


def test_counters_are_as_written(processor, traced):
    """Each value at its time, with its unit."""
    found = read_back(traced)
    rows = processor.query(_COUNTERS)
    written = sorted((name, *point) for name, points in found.counters.items() for point in points)
    assert [(row["name"], row["ts"], row["value"]) for row in rows] == written
    assert {row["name"]: row["unit"] or "" for row in rows} == {
        name: unit for name, unit in found.tracks.items() if unit is not None
    }
