"""Laws of what a run's summary says of its jobs, under policies that lose, delay and cut them."""

import math
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from fleets import AVAILABILITY, FAILURES, POLICIES, built
from hypothesis import given
from hypothesis import strategies as st
from mixed import MIXED
from plans import reasked, with_server
from recorded import dry

from edgefl.analysis.summary import summary
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.runs.group import drafts


@cache
def mixed():
    """Models, exchanges and energies of several kinds, some unknown, a refused device."""
    scenario = {**MIXED, "server": {"policy": "sync", "rounds": 6}}
    return plan(drafts(scenario)[0], DataAccess(need="embedded"))


def summed(planned, *evaluated):
    """A run's summary, its jobs and its events; with evaluations, also what it took to reach their target."""
    with dry(planned, *evaluated) as reader:
        return summary(reader, 0.5 if evaluated else None), jobs_of(reader), reader.rows("events")


def jobs_of(reader):
    """The run's jobs; ``settled_j`` of each are the joules of the tail that it left open at the end."""
    settled = {row["job"]: row["joules"] for row in reader.rows("settled_tails")}
    return [{**row, "settled_j": settled.get(row["job"], 0.0)} for row in reader.rows("jobs")]


def spent_j(row):
    """A job's joules; None if one of them is unknown."""
    joules = [value for name, value in row.items() if name.endswith("_j") and name != "waiting_j"]
    return None if None in joules else math.fsum(joules)


@given(
    built("policies", POLICIES),
    built("availability", AVAILABILITY),
    FAILURES,
    st.sampled_from(["lose", "pause", "finish", "check-at-end"]),
)
def test_a_summary_is_of_its_jobs(policy, availability, failures, on_leave):
    """Under every policy, also where clients leave and jobs fail."""
    plan_, (_, params) = mixed().plan, policy
    dynamics = {"availability": availability[1], "failures": failures, "on_leave": on_leave}
    fleet = plan_.fleet.model_copy(update=dynamics)
    served = with_server(replace(plan_, fleet=fleet), policy=params)
    told = summed(replace(mixed(), plan=served))
    useful_and_wasted_are_all(*told)
    an_energy_is_of_clients_that_are_known_in_full(*told[:2])
    participation_and_utilisation_are_of_admitted_clients(*told[:2])


def useful_and_wasted_are_all(found, jobs, events):
    """Of every quantity: merged + wasted = merged + late + lost + cut = the sum over events."""
    useful, wasted = found.spent["merged"], found.wasted
    assert {ending: part.jobs for ending, part in found.spent.items() if part.jobs} == Counter(
        job["ending"] for job in jobs
    )
    for name in ("jobs", "down_bytes", "up_bytes", "flops", "client_s", "joules"):
        parts = {ending: getattr(part, name) or 0 for ending, part in found.spent.items()}
        total = found.energy.joules if name == "joules" else getattr(found, name)
        # No energy is known if all clients that took part have an unknown one.
        total = 0 if name == "joules" and not found.energy.energy_known else total
        assert sum(parts.values()) == pytest.approx(total)
        assert (getattr(useful, name) or 0) + (getattr(wasted, name) or 0) == pytest.approx(total)
    assert found.jobs == len(jobs)
    for name in ("down_bytes", "up_bytes", "flops"):
        assert getattr(found, name) == sum(event[name] for event in events)
    assert found.client_s == pytest.approx(sum(event["seconds"] for event in events))
    unknown = {event["client"] for event in events if event["joules"] is None}
    known = [event["joules"] for event in events if event["client"] not in unknown]
    assert (found.energy.joules or 0) == pytest.approx(sum(known))
    assert math.fsum(found.joules_by_phase.values()) == pytest.approx(sum(known))
    waiting = [job["waiting_j"] for job in jobs if job["client"] not in unknown]
    assert (found.waiting_joules or 0) == pytest.approx(sum(waiting))
    assert found.virtual_s == events[-1]["t_s"]


def test_sums_may_exceed_64_bits():
    """The operations of a large fleet do; each job's own still fit."""
    plan_ = mixed().plan
    prices = tuple(reasked(one, flops=np.full_like(one.demand.flops, 2**62 + 2**40)) for one in plan_.prices)
    zeros = dict.fromkeys(
        ("round", "loss", "down_bytes", "up_bytes", "energy_known", "energy_clients", "host_s"), 0
    )
    reached = {**zeros, "version": 1, "t_s": 1e12, "model": "global", "accuracy": 0.9}
    found, jobs, _ = summed(replace(mixed(), plan=replace(plan_, prices=prices)), reached)
    assert found.flops == sum(job["flops"] for job in jobs) > 2**63
    assert sum(part.flops for part in found.spent.values()) == found.flops
    assert found.target.global_.flops == found.flops


def an_energy_is_of_clients_that_are_known_in_full(found, jobs):
    """A job whose own energy is known does not count if another job of its client is unknown."""
    unknown = {job["client"] for job in jobs if spent_j(job) is None}
    workers = {job["client"] for job in jobs}
    energies = [spent_j(job) for job in jobs if job["client"] not in unknown]
    assert (found.energy.joules or 0) == pytest.approx(math.fsum(energies))
    assert found.energy[1:] == (len(workers - unknown), len(workers))
    for ending, part in found.spent.items():
        known = [spent_j(job) for job in jobs if job["ending"] == ending and job["client"] not in unknown]
        if known:
            assert part.joules == pytest.approx(math.fsum(known))
        else:
            assert part.joules == (None if part.jobs else 0)


def participation_and_utilisation_are_of_admitted_clients(found, jobs):
    """As their definitions say, reckoned client by client and job by job."""
    rounds = {prices.exchange for prices in mixed().plan.prices if prices.at == "round"}
    counts = [0] * len(mixed().plan.clients)
    for job in jobs:
        counts[job["client"]] += job["ending"] == "merged" and job["exchange"] in rounds
    admitted = int(mixed().plan.clients.admitted.sum())
    assert found.merged_clients == sum(count > 0 for count in counts)
    if any(counts):
        assert found.fairness == pytest.approx(sum(counts) ** 2 / (admitted * sum(x * x for x in counts)))
    busy_s = sum(job["receive_s"] + job["work_s"] + job["transmit_s"] for job in jobs)
    if found.virtual_s:
        assert found.utilisation == pytest.approx(busy_s / (admitted * found.virtual_s))
