"""Laws of a server that waits for all, over clients that are always there and exchanges of every kind."""

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from fleets import POLICIES, fleets, only
from hypothesis import given
from hypothesis import strategies as st
from plans import told

from edgefl.core.fleet import Failures
from edgefl.world.needs import Merge

PLANS = {
    "policies": only(POLICIES, "sync"),
    "availability": {"always": st.just({})},
    "speed": {},
    "failures": Failures(),
    "until": {"rounds": 4},
}


@given(fleets(**PLANS))
def test_a_job_is_charged_its_prices(plan_):
    """Every station lasts as long as its charge; bytes and operations are the client's prices."""
    for row in told(plan_)[2]:
        stations = [row[name] for name in ("dispatched_s", "received_s", "worked_s", "arrived_s")]
        taken_s = [row[name] for name in ("receive_s", "work_s", "transmit_s")]
        assert np.diff(stations) == pytest.approx(taken_s, rel=1e-9, abs=1e-6)
        draw = plan_.prices[row["exchange"]].demand.taken(plan_.clients.kind[row["client"]])
        assert (row["receive_s"], row["down_bytes"]) == (draw.down_s, draw.down_bytes)
        assert (row["transmit_s"], row["up_bytes"], row["flops"]) == (draw.up_s, draw.up_bytes, draw.flops)
        megabits, received_j = 8 * draw.down_bytes / 1e6, row["receive_j"] + row["receive_idle_j"]
        if math.isnan(draw.radio_w):
            assert math.isnan(received_j) or not (row["receive_s"] or megabits)
        else:
            expected_j = (draw.radio_w + draw.idle_w) * row["receive_s"] + draw.receive_j_per_mbit * megabits
            assert math.isclose(received_j, expected_j, abs_tol=1e-6)
        assert math.isclose(row["work_j"], draw.compute_w * row["work_s"])
        assert row["work_idle_j"] == draw.idle_w * row["work_s"]
        if row["receive_s"]:
            between_s = min(draw.tail_s, row["work_s"]) if row["transmit_s"] else 0
            assert math.isclose(row["work_tail_j"], draw.tail_w * between_s, abs_tol=1e-9)


@given(fleets(**PLANS))
def test_a_merge_waits_for_its_cohort(plan_):
    """It happens at the last arrival of its jobs, and takes them in the order of clients."""
    _, needs, rows = told(plan_)
    arrivals = dict(zip(rows["job"].tolist(), rows["arrived_s"].tolist(), strict=True))
    for need in needs:
        if isinstance(need, Merge) and need.merged:
            assert need.t_s == max(arrivals[job.id] for job in need.merged)
            clients = [job.client for job in need.merged]
            assert clients == sorted(set(clients))


@given(fleets(**PLANS))
def test_exchanges_happen_when_they_should_with_whom_they_should(plan_):
    """Start once, end once, in rounds every so many; all admitted clients, or as many as take part."""
    _, needs, _ = told(plan_)
    rounds, participants = plan_.scenario.server.until.rounds, plan_.scenario.server.participants
    admitted = set(np.flatnonzero(plan_.clients.admitted).tolist())
    for table in plan_.prices:
        cohorts = [
            {job.client for job in need.merged}
            for need in needs
            if isinstance(need, Merge) and need.exchange == table.exchange
        ]
        assert len(cohorts) == (rounds // table.every if table.at == "round" else 1)
        for cohort in cohorts:
            assert cohort <= admitted
            most = len(admitted) if table.everyone else participants or len(admitted)
            assert len(cohort) == min(most, len(admitted))


@given(fleets(**PLANS))
def test_a_client_keeps_its_draws_when_others_come_and_go(plan_):
    """A client's n-th job in an exchange takes as long whoever else is in the fleet."""

    def computed(plan_):
        jobs = defaultdict(list)
        for row in np.sort(told(plan_)[2], order="job"):
            jobs[row["exchange"], row["client"]].append(row["work_s"])
        return jobs

    everyone = tuple(replace(table, everyone=True) for table in plan_.prices)
    few, many = computed(plan_), computed(replace(plan_, prices=everyone))
    for key, seconds in few.items():
        assert many[key][: len(seconds)] == seconds
