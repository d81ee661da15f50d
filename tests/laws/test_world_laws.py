"""Laws of the clock, over random small plans."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from plans import facts, plan, play, played, prices, told

from edgefl.core.event import Kind
from edgefl.core.ledger import Ledger
from edgefl.core.samplers.fixed import Params as Fixed
from edgefl.core.samplers.half_normal import Params as HalfNormal
from edgefl.core.samplers.lognormal import Params as LogNormal
from edgefl.core.samplers.pareto import Params as Pareto
from edgefl.world.needs import Evaluate, Feedback, Merge

JOB = [Kind.DISPATCHED, Kind.RECEIVED, Kind.WORKED, Kind.ARRIVED]
JITTERS = (
    Fixed(),
    LogNormal(sigma=0.3),
    HalfNormal(scale=0.5),
    Pareto(tail=1.5),
)
SECONDS = st.one_of(st.just(0.0), st.floats(0.01, 100))


@st.composite
def plans(draw, jitters=JITTERS):
    """Plans of 1 to 12 clients and 1 to 3 exchanges of every kind, with times of 0 and unknown energies."""
    count = draw(st.integers(1, 12))

    def column(values):
        return draw(st.lists(values, min_size=count, max_size=count))

    # A client's radio is the same in every exchange.
    tails = {"tail_w": column(SECONDS), "tail_s": column(SECONDS)}
    table = [
        prices(
            f"exchange-{index}",
            count,
            at=draw(st.sampled_from(["round", "round", "start", "end"])),
            every=draw(st.integers(1, 3)),
            everyone=draw(st.booleans()),
            down_s=column(SECONDS),
            compute_s=column(SECONDS),
            up_s=column(SECONDS),
            radio_w=column(st.one_of(st.just(math.nan), SECONDS)),
            receive_j_per_mbit=column(SECONDS),
            transmit_j_per_mbit=column(SECONDS),
            compute_w=column(SECONDS),
            idle_w=column(SECONDS),
            **tails,
            down_bytes=column(st.integers(0, 10**9)),
            up_bytes=column(st.integers(0, 10**9)),
            flops=column(st.integers(0, 10**12)),
        )
        for index in range(draw(st.integers(1, 3)))
    ]
    return plan(
        table,
        rounds=draw(st.integers(1, 5)),
        participants=draw(st.one_of(st.none(), st.integers(1, count))),
        every=draw(st.integers(1, 3)),
        seed=draw(st.integers(0, 2**32)),
        slowdown=column(st.floats(0.1, 10)),
        refused=draw(st.sets(st.integers(0, count - 1), max_size=count - 1)),
        jitter=draw(st.sampled_from(jitters)),
    )


def _by_job(events):
    jobs = defaultdict(list)
    for event in events:
        if event.job >= 0:
            jobs[event.job].append(event)
    return jobs


def _merges(needs):
    return [need for need in needs if isinstance(need, Merge)]


@given(plans())
def test_time_never_falls_and_events_are_numbered(plan_):
    """Events come in the order of time, numbered 0, 1, 2 ... without a gap."""
    events, _ = play(plan_)
    times = [event.t_s for event in events]
    assert times == sorted(times)
    assert [event.seq for event in events] == list(range(len(events)))


@given(plans())
def test_a_job_is_received_worked_and_arrives(plan_):
    """Every dispatched job goes through all its stations, in order, each as long as its charge says."""
    events, _ = play(plan_)
    for job in _by_job(events).values():
        assert [event.kind for event in job] == JOB
        assert len({(event.client, event.exchange, event.round, event.version) for event in job}) == 1
        for before, after in pairwise(job):
            assert math.isclose(after.t_s - before.t_s, after.cost.seconds, rel_tol=1e-9, abs_tol=1e-6)


@given(plans())
def test_a_job_is_charged_its_prices(plan_):
    """Bytes and operations are the client's prices; compute time and energy are scaled by the same draw."""
    events, _ = play(plan_)
    for job in _by_job(events).values():
        table, client = plan_.price(job[0].exchange), job[0].client
        received, worked, arrived = (event.cost for event in job[1:])
        demand = table.demand(plan_.clients.kind[client])
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
        expected = (draw.compute_w + draw.idle_w) * worked.seconds + draw.tail_w * between_s
        assert math.isclose(worked.joules, expected)
        assert worked.idle_j == draw.idle_w * worked.seconds
        assert math.isclose(worked.tail_j, draw.tail_w * between_s, abs_tol=1e-9)


@given(plans())
def test_a_client_never_overlaps_itself(plan_):
    """A client's next job is dispatched no earlier than its last one arrived."""
    events, _ = play(plan_)
    busy = defaultdict(list)
    for job in _by_job(events).values():
        busy[job[0].client].append((job[0].t_s, job[-1].t_s))
    for spans in busy.values():
        for (_, end), (start, _) in pairwise(sorted(spans)):
            assert start >= end


@given(plans())
def test_every_job_is_merged_once(plan_):
    """Merges take each arrived job exactly once, in the order of clients, and count the versions from 1."""
    events, needs = play(plan_)
    merges = _merges(needs)
    assert [need.version for need in merges] == list(range(1, len(merges) + 1))
    assert sorted(job.id for need in merges for job in need.merged) == sorted(_by_job(events))
    for need in merges:
        clients = [job.client for job in need.merged]
        assert clients == sorted(set(clients))
        assert all(job.exchange == need.exchange and job.version == need.version - 1 for job in need.merged)
    merged = [event for event in events if event.kind is Kind.MERGED]
    assert [(event.version, event.exchange) for event in merged] == [
        (need.version, need.exchange) for need in merges
    ]


@given(plans())
def test_a_merge_waits_for_its_cohort(plan_):
    """A synchronous merge happens at the last arrival of its jobs, and the next dispatch no earlier."""
    events, needs = play(plan_)
    arrivals = {event.job: event.t_s for event in events if event.kind is Kind.ARRIVED}
    at = {event.version: event.t_s for event in events if event.kind is Kind.MERGED}
    for need in _merges(needs):
        if need.merged:
            assert at[need.version] == max(arrivals[job.id] for job in need.merged)


@given(plans())
def test_exchanges_happen_when_they_should_with_whom_they_should(plan_):
    """Start once, end once, in rounds every so many; all admitted clients, or as many as take part."""
    _, needs = play(plan_)
    rounds, participants = plan_.scenario.server.until.rounds, plan_.scenario.server.participants
    admitted = set(np.flatnonzero(plan_.clients.admitted).tolist())
    for table in plan_.prices:
        cohorts = [
            {job.client for job in need.merged} for need in _merges(needs) if need.exchange == table.exchange
        ]
        assert len(cohorts) == (rounds // table.every if table.at == "round" else 1)
        for cohort in cohorts:
            assert cohort <= admitted
            assert len(cohort) == (
                len(admitted) if table.everyone else min(participants or len(admitted), len(admitted))
            )


@given(plans())
def test_a_refused_client_never_works(plan_):
    """A refused client has one event, its refusal, at time zero before everything else."""
    events, _ = play(plan_)
    refused = [event.client for event in events if event.kind is Kind.REFUSED]
    assert refused == [refusal.client for refusal in plan_.refusals]
    assert [event.client for event in events[: len(refused)]] == refused
    assert not set(refused) & {event.client for event in events[len(refused) :]}


@given(plans(), st.data())
def test_feedback_moves_no_event(plan_, data):
    """The same plan gives the same events and needs, whatever an engine answers; twice the same, too."""
    scalars = st.dictionaries(st.sampled_from(["loss", "global"]), st.floats(-9, 9))
    answers = st.builds(Feedback, st.dictionaries(st.integers(0, 99), scalars), scalars)

    def run(feedback):
        events, needs, jobs = played(plan_, feedback)
        return events, [facts(need) for need in needs], jobs

    assert run(lambda _: Feedback()) == run(lambda _: data.draw(answers))


@given(plans())
def test_a_version_is_scored_once_and_the_last_always(plan_):
    """No version is evaluated twice, and the last one is."""
    _, needs = play(plan_)
    scored = [need.version for need in needs if isinstance(need, Evaluate)]
    assert len(set(scored)) == len(scored)
    assert scored[-1] == max([need.version for need in _merges(needs)], default=0)


@given(plans())
def test_the_ledger_is_the_sum_of_events(plan_):
    """Every total of the ledger is the sum over events; energy counts where known and says where not."""
    events, needs, _ = played(plan_)
    rows = told(plan_)[2]
    half, ledger = len(rows) // 2, Ledger(len(plan_.clients))
    ledger.add(rows[:half])
    totals = ledger.totals(rows[half:])
    ledger.add(rows[half:])
    assert ledger.totals(rows[:0]) == totals
    assert totals.down_bytes == sum(event.cost.down_bytes for event in events)
    assert totals.up_bytes == sum(event.cost.up_bytes for event in events)
    assert totals.flops == sum(event.cost.flops for event in events)
    workers = {job[0].client for job in _by_job(events).values()}
    unknown = {event.client for event in events if event.cost.joules is None}
    known = [event.cost.joules for event in events if event.client >= 0 and event.client not in unknown]
    joules, energy_known, energy_clients = totals.energy
    if energy_known:
        assert math.isclose(joules, math.fsum(known), abs_tol=1e-9)
    else:
        assert joules is None
    assert (energy_known, energy_clients) == (len(workers - unknown), len(workers))
    last = [need for need in needs if isinstance(need, Evaluate)][-1]
    assert last.totals[:3] == totals[:3]


@given(plans(jitters=(Fixed(),)))
def test_of_two_clients_in_a_round_the_faster_arrives_no_later(plan_):
    """Without jitter, a client that no phase takes longer arrives no later in the same exchange and round."""
    events, _ = play(plan_)
    cohorts = defaultdict(list)
    for job in _by_job(events).values():
        phases = [event.cost.seconds for event in job[1:]]
        cohorts[job[0].version].append((phases, job[-1].t_s))
    for cohort in cohorts.values():
        for fast, soon in cohort:
            for slow, late in cohort:
                if all(quick <= other for quick, other in zip(fast, slow, strict=True)):
                    assert soon <= late


@given(plans(), st.integers(0, 11), st.floats(0.1, 1))
def test_a_faster_device_makes_nothing_later(plan_, client, factor):
    """With one client's computing sped up, the same things happen to the same jobs, none of them later."""
    table = tuple(replace(each, work_s=_scaled(each.work_s, client, factor)) for each in plan_.prices)
    slow, fast = play(plan_)[0], play(replace(plan_, prices=table))[0]

    def times(events):
        return {(event.kind, event.job, event.version, event.client): event.t_s for event in events}

    before, after = times(slow), times(fast)
    assert before.keys() == after.keys()
    assert all(after[key] <= before[key] * (1 + 1e-12) for key in before)


def _scaled(column, client, factor):
    changed = column.copy()
    changed[client % len(column)] *= factor
    return changed


@given(plans())
def test_a_client_keeps_its_draws_when_others_come_and_go(plan_):
    """A client's n-th job in an exchange takes as long whoever else is in the fleet."""

    def computed(events):
        jobs = defaultdict(list)
        for job in _by_job(events).values():
            jobs[job[0].exchange, job[0].client].append(job[2].cost.seconds)
        return jobs

    everyone = tuple(replace(table, everyone=True) for table in plan_.prices)
    few, many = computed(play(plan_)[0]), computed(play(replace(plan_, prices=everyone))[0])
    for key, seconds in few.items():
        assert many[key][: len(seconds)] == seconds
