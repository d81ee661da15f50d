"""Laws of the timeline's file, under every policy, availability, speed and failure."""

import math
from collections import Counter, defaultdict
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from fleets import fleets, valid
from hypothesis import given
from plans import plan
from recorded import recorded
from told import times
from traced import read_back

from edgefl.analysis.summary import summary
from edgefl.core import catalogue
from edgefl.core.availability.charging import Charging
from edgefl.core.event import JOULES
from edgefl.show.perfetto.build import write_timeline


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """(plan): its run and what its timeline shows."""
    path = tmp_path_factory.mktemp("timeline") / "run.pftrace"

    def made(plan_):
        notes = []
        with recorded(plan_, [0.25, 0.5]) as reader:
            written = write_timeline(reader, path, plan=plan_, note=notes.append)
            run = summary(reader)
            found = SimpleNamespace(
                plan=plan_,
                run=run,
                jobs=reader.rows("jobs"),
                tails=reader.rows("settled_tails"),
                merges=reader.rows("merges"),
                written=written,
                traced=read_back(path.read_bytes()),
            )
        assert notes == []
        found.lanes = defaultdict(list)
        for one in found.traced.slices:
            if one.track.startswith("client "):
                found.lanes[int(one.track.split()[1])].append(one)
        return found

    return made


def until_s(job):
    """When a job's client was free again."""
    return job["ended_s"] if job["arrived_s"] is None else job["arrived_s"]


def ns(t_s):
    """Whole nanoseconds."""
    return round(t_s * 1e9)


def is_job(one):
    """Whether a slice is a job."""
    return "job" in one.arguments


def every_job_has_its_slice(found):
    """On its client's track, from its dispatch until the client is free again, named by how it ended."""
    slices = {
        one.arguments["job"]: (client, one)
        for client, lane in found.lanes.items()
        for one in lane
        if is_job(one)
    }
    assert len(slices) == len(found.jobs) == found.written.jobs
    for job in found.jobs:
        client, one = slices[job["job"]]
        assert client == job["client"]
        assert (one.from_ns, one.to_ns) == (ns(job["dispatched_s"]), ns(until_s(job)))
        assert one.categories == [job["ending"]]
        mark = "" if job["ending"] == "merged" else f" ({job['ending']})"
        assert one.name == job["exchange"] + mark
        if job["into_version"] is not None:
            assert one.arguments["staleness"] == job["into_version"] - 1 - job["version"] >= 0
    tracks = [name for name in found.traced.tracks if name.startswith("client ")]
    assert [int(name.split()[1]) for name in tracks] == sorted({job["client"] for job in found.jobs})


def slices_of_a_client_nest_and_follow_each_other(found):
    """At each depth, none begins before the one before it has ended, and each lies in the one above it."""
    for lane in found.lanes.values():
        for depth in {one.depth for one in lane}:
            for before, after in pairwise(one for one in lane if one.depth == depth):
                assert before.to_ns <= after.from_ns
        above = {}
        for one in lane:
            above[one.depth] = one
            if one.depth:
                outer = above[one.depth - 1]
                assert outer.from_ns <= one.from_ns <= one.to_ns <= outer.to_ns
            assert is_job(one) == (one.depth == 0 and one.name != "away")


def every_flow_begins_at_its_dispatch_and_ends_once(found):
    """In the merge that the job went into, or in the job if it went into none."""
    begun = Counter(flow for one in found.traced.named("dispatch") for flow in one.through)
    ended = Counter(flow for one in (*found.traced.slices, *found.traced.instants) for flow in one.into)
    assert begun == ended == Counter(job["job"] + 1 for job in found.jobs)
    into = {flow: one.arguments["version"] for one in found.traced.named("merge") for flow in one.into}
    merged = {job["job"] + 1: job["into_version"] for job in found.jobs if job["ending"] == "merged"}
    assert into == merged
    dispatched = {flow: one.from_ns for one in found.traced.named("dispatch") for flow in one.through}
    assert dispatched == {job["job"] + 1: ns(job["dispatched_s"]) for job in found.jobs}
    assert len(found.traced.named("merge")) == len(found.merges)


def sums_are_the_summary(found):
    """Energy, bytes and client-seconds of the slices; the last values of the counters."""
    stages = [one for lane in found.lanes.values() for one in lane if "busy_s" in one.arguments]
    energies = [(row["client"], row["joules"]) for row in found.tails]
    energies += [(job["client"], job[name]) for job in found.jobs for name in JOULES]
    unknown = {client for client, joules in energies if joules is None}
    whole = sum(joules for client, joules in energies if client not in unknown)
    assert whole == pytest.approx(found.run.energy.joules or 0.0)
    settled = sum(row["joules"] for row in found.tails if row["client"] not in unknown)
    parts = ("active_j", "idle_j", "tail_j")
    charged = sum(
        one.arguments.get(part, 0.0)
        for client in found.lanes.keys() - unknown
        for one in found.lanes[client]
        for part in parts
    )
    assert charged + settled == pytest.approx(whole)
    for name, direction in (("down", "down_bytes"), ("up", "up_bytes")):
        moved = sum(one.arguments["bytes"] for one in stages if one.categories == [name])
        assert moved == getattr(found.run, direction)
    assert sum(one.arguments.get("flops", 0) for one in stages) == found.run.flops
    busy_s = sum(one.arguments["busy_s"] for one in stages)
    assert busy_s == pytest.approx(found.run.client_s)
    last = {name: values[-1][1] for name, values in found.traced.counters.items() if values}
    assert last["active clients"] == last["downlink"] == last["uplink"] == 0
    assert last["energy"] == pytest.approx(whole)
    if found.run.accuracy:
        assert last["accuracy, global"] == found.run.accuracy["global"].value


def counters_are_of_the_jobs(found):
    """Links carry all bytes of transfers that take time, and clients are active for as long as their jobs."""
    for name, values in found.traced.counters.items():
        assert all(one[0] < other[0] for one, other in pairwise(values))
        assert name.startswith("accuracy") or all(value >= 0 for _, value in values)

    def area(name):
        values = found.traced.counters[name]
        return sum(value * (after - t_ns) / 1e9 for (t_ns, value), (after, _) in pairwise(values))

    assert area("active clients") == pytest.approx(
        sum(until_s(job) - job["dispatched_s"] for job in found.jobs), abs=1e-6
    )
    spans = {"down": ("dispatched_s", "received_s"), "up": ("worked_s", "arrived_s")}
    for way, (first, last) in spans.items():
        bits = 0.0
        for job in found.jobs:
            if job[first] is not None:
                end_s = job["ended_s"] if job[last] is None else job[last]
                bits += 8 * job[f"{way}_bytes"] * (end_s > job[first])
        assert area(f"{way}link") == pytest.approx(bits, rel=1e-4, abs=1e-3)


def away_is_when_nobody_can_be_asked(found):
    """Nobody is dispatched to while away; who leaves a job behind is in none while away; pauses are away."""
    fleet = found.plan.fleet
    for client, lane in found.lanes.items():
        away = [one for one in lane if one.name == "away"]
        if fleet.availability.name == "always":
            assert away == []
        for one in lane:
            if is_job(one):
                assert not any(span.from_ns <= one.from_ns < span.to_ns for span in away), client
        if fleet.on_leave == "lose":
            assert all(one.depth == 0 for one in away)
        bounds = {end for one in lane if one.name != "away" for end in (one.from_ns, one.to_ns)}
        for before, after in pairwise(away):
            assert before.to_ns < after.from_ns or before.to_ns in bounds


def pauses_are_away(found):
    """Where clients pause, a stage that is over took its busy seconds and those away."""
    if isinstance(found.plan.fleet.availability.timetable(found.plan.clients, 0), Charging):
        return
    for lane in found.lanes.values():
        stages = [one for one in lane if one.depth == 1 and one.name in {"down", "compute", "up"}]
        for stage in stages:
            inside = [one.ns for one in lane if one.depth == 2 and stage.from_ns <= one.from_ns < stage.to_ns]
            assert stage.ns / 1e9 == pytest.approx(stage.arguments["busy_s"] + sum(inside) / 1e9, abs=1e-6)


def away_is_what_the_timetable_says(found):
    """At any time, where it depends on no battery."""
    timetable = found.plan.fleet.availability.timetable(found.plan.clients, found.plan.scenario.seed)
    if isinstance(timetable, Charging) or not found.lanes or not found.run.virtual_s:
        return
    times = np.linspace(0, found.run.virtual_s, 41)[:-1] + 1e-4 * math.pi
    for client, lane in found.lanes.items():
        spans = [(one.from_ns, one.to_ns) for one in lane if one.name == "away"]
        there = timetable.at(np.full(len(times), client), times).available
        for t_s, is_there in zip(times.tolist(), there.tolist(), strict=True):
            if t_s < found.run.virtual_s:
                assert is_there != any(first <= ns(t_s) < last for first, last in spans)


LAWS = (
    every_job_has_its_slice,
    slices_of_a_client_nest_and_follow_each_other,
    every_flow_begins_at_its_dispatch_and_ends_once,
    sums_are_the_summary,
    counters_are_of_the_jobs,
    away_is_when_nobody_can_be_asked,
    away_is_what_the_timetable_says,
)


@given(fleets())
def test_what_the_file_shows_of_a_run(shown, plan_):
    """Of each run, all that is said above."""
    found = shown(plan_)
    for law in LAWS:
        law(found)


@given(fleets(on_leave="pause"))
def test_pauses_are_away(shown, plan_):
    """Where clients pause."""
    pauses_are_away(shown(plan_))


def test_a_battery_that_a_job_drained_is_filled_before_the_next(shown):
    """Of 100 J, a job of 22 s takes 80 J; a charger of 1 W needs 30 s until half of them are there.

    When the second job ends, 72 J are, less than it takes: the charger needs 50 s.
    """
    numbers = {"capacity": 100, "charger": 1, "minimum": 0.5, "initial": (1, 1), "spread": 0, "days": 1}
    charging = valid(catalogue.load("availability", "charging").Params, **numbers)
    found = shown(plan([times(work=[20], compute_w=4)], availability=charging, rounds=3))
    own = [(one.name, one.from_ns / 1e9, one.to_ns / 1e9) for one in found.lanes[0] if not one.depth]
    assert own == [
        ("train", 0, 22),
        ("away", 22, 52),
        ("train", 52, 74),
        ("away", 74, 124),
        ("train", 124, 146),
    ]
