"""Laws of a server that waits for all, over clients that are always there and exchanges of every kind."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import numpy as np
from fleets import POLICIES, fleets, only
from hypothesis import given
from hypothesis import strategies as st
from plans import play

from edgefl.core.event import Kind
from edgefl.core.fleet import Failures
from edgefl.world.needs import Merge

PLANS = {
    "policies": only(POLICIES, "sync"),
    "availability": {"always": st.just({})},
    "speed": {},
    "failures": Failures(),
    "until": {"rounds": 4},
}


def jobs_of(events):
    """Each job's events, until it arrives."""
    jobs = defaultdict(list)
    for event in events:
        if event.job >= 0:
            jobs[event.job].append(event)
    return jobs.values()


@given(fleets(**PLANS))
def test_a_job_is_charged_its_prices(plan_):
    """Every station lasts as long as its charge; bytes and operations are the client's prices."""
    for job in jobs_of(play(plan_)[0]):
        assert [event.kind for event in job] == [Kind.DISPATCHED, Kind.RECEIVED, Kind.WORKED, Kind.ARRIVED]
        for before, after in pairwise(job):
            assert math.isclose(after.t_s - before.t_s, after.cost.seconds, rel_tol=1e-9, abs_tol=1e-6)
        received, worked, arrived = (event.cost for event in job[1:])
        demand = plan_.price(job[0].exchange).demand(plan_.clients.kind[job[0].client])
        draw, megabits = demand, 8 * demand.down_bytes / 1e6
        assert (received.seconds, received.down_bytes) == (demand.down_s, demand.down_bytes)
        assert (arrived.seconds, arrived.up_bytes) == (demand.up_s, demand.up_bytes)
        assert worked.flops == demand.flops
        if math.isnan(draw.radio_w):
            assert received.joules is None or not (received.seconds or megabits)
        else:
            carrying_j = draw.radio_w * received.seconds + draw.receive_j_per_mbit * megabits
            receiving_j = received.joules - received.tail_j
            assert math.isclose(receiving_j, carrying_j + draw.idle_w * received.seconds, abs_tol=1e-6)
        between_s = min(draw.tail_s, worked.seconds) if received.seconds and arrived.seconds else 0
        expected = (draw.compute_w + draw.idle_w) * worked.seconds
        assert worked.idle_j == draw.idle_w * worked.seconds
        if received.seconds:
            assert math.isclose(worked.tail_j, draw.tail_w * between_s, abs_tol=1e-9)
        assert math.isclose(worked.joules, expected + worked.tail_j)


@given(fleets(**PLANS))
def test_a_merge_waits_for_its_cohort(plan_):
    """It happens at the last arrival of its jobs, and takes them in the order of clients."""
    events, needs = play(plan_)
    arrivals = {event.job: event.t_s for event in events if event.kind is Kind.ARRIVED}
    for need in needs:
        if isinstance(need, Merge) and need.merged:
            assert need.t_s == max(arrivals[job.id] for job in need.merged)
            clients = [job.client for job in need.merged]
            assert clients == sorted(set(clients))


@given(fleets(**PLANS))
def test_exchanges_happen_when_they_should_with_whom_they_should(plan_):
    """Start once, end once, in rounds every so many; all admitted clients, or as many as take part."""
    _, needs = play(plan_)
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
        for job in jobs_of(play(plan_)[0]):
            jobs[job[0].exchange, job[0].client].append(job[2].cost.seconds)
        return jobs

    everyone = tuple(replace(table, everyone=True) for table in plan_.prices)
    few, many = computed(plan_), computed(replace(plan_, prices=everyone))
    for key, seconds in few.items():
        assert many[key][: len(seconds)] == seconds
