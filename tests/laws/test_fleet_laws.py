"""Laws of runs over every policy, selector, availability, speed and failure, in small random plans."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from fleets import AVAILABILITY, POLICIES, SELECTORS, SPEED, fleets
from hypothesis import given
from hypothesis import strategies as st
from plans import dispatched, facts, in_cells, told, told_all

from edgefl.core import catalogue
from edgefl.core.event import ENDINGS, JOB, Kind
from edgefl.world.needs import Feedback, Merge

MERGED, LATE, LOST, CUT = (ENDINGS.index(kind) for kind in (Kind.MERGED, Kind.LATE, Kind.LOST, Kind.CUT))
STATIONS = ("dispatched_s", "received_s", "worked_s", "arrived_s")


def merges(needs):
    return [need for need in needs if isinstance(need, Merge)]


def over_s(rows):
    """When each job's client was done with it."""
    return np.where(np.isnan(rows["arrived_s"]), rows["ended_s"], rows["arrived_s"])


@pytest.mark.parametrize(
    ("kind", "strategies"),
    [("policies", POLICIES), ("selectors", SELECTORS), ("availability", AVAILABILITY), ("speed", SPEED)],
)
def test_every_component_is_drawn(kind, strategies):
    """A new file has a strategy in ``fleets.py``."""
    assert set(strategies) == set(catalogue.entries(kind))


@given(fleets())
def test_time_never_falls_and_jobs_are_causal(plan_):
    """Events come in order; a job begins at the newest version and is merged after it arrived."""
    server, _, rows = told(plan_)
    assert all(before.t_s <= after.t_s and before.turn < after.turn for before, after in pairwise(server))
    made = [event for event in server if event.kind is Kind.MERGED]
    assert [event.version for event in made] == list(range(1, len(made) + 1))
    for row in rows:
        times = [row[name] for name in STATIONS if not np.isnan(row[name])]
        assert [row[name] for name in STATIONS[: len(times)]] == times
        assert times == sorted(times)
        assert row["ended_s"] >= times[-1]
        newest = sum(event.turn < row["dispatched_turn"] for event in made)
        assert row["version"] == newest
        assert newest == 0 or made[newest - 1].t_s <= row["dispatched_s"]
        assert newest == len(made) or row["dispatched_s"] <= made[newest].t_s
        if row["ending"] == MERGED:
            into = made[row["into_version"] - 1]
            assert (into.turn, into.t_s) == (row["ended_turn"], row["ended_s"])
            assert len(times) == len(STATIONS)
            assert row["dispatched_turn"] < into.turn
        else:
            assert row["into_version"] == -1
    by_job = rows[np.argsort(rows["job"])]
    assert (np.diff(by_job["dispatched_s"]) >= 0).all()
    assert (np.diff(by_job["dispatched_turn"]) >= 0).all()


@given(fleets())
def test_every_dispatched_job_ends_exactly_once(plan_):
    """Merged, late, lost or cut; a merge takes what its need says."""
    with dispatched() as numbers:
        _, needs, rows = told(plan_)
    assert numbers == list(range(len(numbers)))
    assert sorted(rows["job"].tolist()) == numbers
    assert set(rows["ending"].tolist()) <= {MERGED, LATE, LOST, CUT}
    into = {job: need.version for need in merges(needs) for job in need.rows["job"].tolist()}
    assert len(into) == sum(len(need.rows) for need in merges(needs))
    merged = rows[rows["ending"] == MERGED]
    assert into == dict(zip(merged["job"].tolist(), merged["into_version"].tolist(), strict=True))


@given(fleets())
def test_live_versions_are_what_jobs_in_flight_need(plan_):
    """Ready are the jobs that have begun and not ended; their versions are kept, and no others."""
    server, needs, rows = told(plan_)
    turns = [event.turn for event in server if event.kind in {Kind.MERGED, Kind.EVALUATED}]
    committed = set()
    for turn, need in zip(turns, needs, strict=True):
        ended = np.where(rows["ended_turn"] > 0, rows["ended_turn"] <= turn, rows["ended_s"] <= need.t_s)
        begun = rows[(rows["dispatched_turn"] < turn) & ~ended]
        assert {job.id for job in need.ready} == set(begun["job"].tolist())
        wrote = np.array([prices.stateful for prices in plan_.prices])[rows["exchange"]]
        late = rows[(rows["ending"] == LATE) & wrote & (rows["worked_s"] <= rows["ended_s"]) & ended]
        waiting = set(late["job"].tolist()) - committed
        completed = {job.id for job in need.completed}
        assert completed <= waiting
        committed |= completed
        if isinstance(need, Merge):
            waiting = rows["version"][np.isin(rows["job"], list(waiting - completed))]
            assert set(need.live_versions) == {need.version, *begun["version"].tolist(), *waiting.tolist()}


def away_s(timetable, client, start_s, end_s):
    """The seconds between two times in which a client is away."""
    total, now = 0.0, start_s
    while now < end_s:
        there, until = timetable.at(np.array([client]), np.array([now]))
        if not there[0]:
            total += min(until[0], end_s) - now
        now = until[0]
    return total


# With batteries, when a client is there depends on what it did.
CLOCKED = {name: values for name, values in AVAILABILITY.items() if name != "charging"}


@given(fleets(availability=CLOCKED))
def test_nobody_works_while_away(plan_):
    """A job is lost when its client leaves, or rests until it is back; else it goes on.

    With ``check-at-end`` nothing arrives from a client that is away, and has been.
    """
    on_leave = plan_.fleet.on_leave
    timetable = plan_.fleet.availability.timetable(plan_.clients, plan_.scenario.seed)
    for row in told(plan_)[2]:
        client, start_s, end_s = row["client"], row["dispatched_s"], over_s(row)
        assert timetable.at(np.array([client]), np.array([start_s])).available[0]
        busy_s, gone_s = row["receive_s"] + row["work_s"] + row["transmit_s"], 0.0
        if on_leave == "pause":
            gone_s = away_s(timetable, client, start_s, end_s)
        elif on_leave == "lose":
            assert away_s(timetable, client, start_s, end_s) == 0
        elif on_leave == "check-at-end" and np.isfinite(row["arrived_s"]):
            at_s = np.array([np.nextafter(row["arrived_s"], 0), row["arrived_s"]])
            assert timetable.at(np.full(2, client), at_s).available.any()
        assert math.isclose(busy_s, end_s - start_s - gone_s, rel_tol=1e-9, abs_tol=1e-6)


def rows_of(plan_, **options):
    """What a run records, as values that compare: jobs, the server's events, and needs."""
    server, needs, rows, tails = told_all(plan_, **options)
    rows.sort(order="job")  # of jobs that end at the same time, a shared link may have counted another first
    return [rows[name] for name in JOB.names], server, [facts(need) for need in needs], tails.tolist()


@given(fleets(instant=False), st.sampled_from([None, 1e15]))
def test_a_wide_link_is_no_link(plan_, cell_bps):
    """Shared capacities that are never used up change nothing, to the bit, however large they are."""
    server = plan_.scenario.server.model_copy(update={"uplink": 1e308, "downlink": 1e17})
    wide = replace(plan_, scenario=plan_.scenario.model_copy(update={"server": server}))
    if cell_bps is not None:
        wide = in_cells(wide, cell_bps, size=2)
    same_rows(plan_, rows_of(plan_), rows_of(wide))


def same_rows(plan_, one, other):
    """Two runs record the same; to rounding errors, if clients pause."""
    (columns, *facts_), (others, *same) = one, other
    for name, known, walked in zip(JOB.names, columns, others, strict=True):
        if plan_.fleet.on_leave == "pause":
            rounding = 1 if known.dtype == np.int64 else 1e-9
            np.testing.assert_allclose(known, walked, rtol=1e-9, atol=rounding, err_msg=name)
        else:
            np.testing.assert_array_equal(known, walked, err_msg=name)
    assert plan_.fleet.on_leave == "pause" or facts_ == same


QUIET = {
    name: values for name, values in SELECTORS.items() if not catalogue.load("selectors", name).Params.READS
}


@given(fleets(selectors=QUIET), st.data())
def test_feedback_moves_nothing(plan_, data):
    """Whatever training reports, the same happens, unless the selector reads it."""
    scalars = st.dictionaries(st.sampled_from(["loss", "loss_rms", "global"]), st.floats(0, 9))
    answers = st.builds(Feedback, st.dictionaries(st.integers(0, 20), scalars), scalars)
    columns, *others = rows_of(plan_)
    again, *same = rows_of(plan_, feedback=lambda _: data.draw(answers))
    for known, other in zip(columns, again, strict=True):
        np.testing.assert_array_equal(known, other)
    assert others == same
