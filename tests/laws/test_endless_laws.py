"""Laws of long runs and of how they end."""

import re
from dataclasses import replace

import numpy as np
import pytest
from fleets import POLICIES, fleets, valid
from hypothesis import given
from plans import plan, prices, told

from edgefl.core import catalogue
from edgefl.core.errors import RunError
from edgefl.core.event import ENDINGS, Kind
from edgefl.core.samplers.lognormal import Params as LogNormal
from edgefl.world import driver
from edgefl.world.job import LIVE
from edgefl.world.needs import Evaluate, Feedback, Merge

PARAMS = {"deadline": {"seconds": 9.0}, "semi-sync": {"interval": 9.0}, "fedbuff": {"buffer": 3}}


def params_of(policy):
    return valid(catalogue.load("policies", policy).Params, **PARAMS.get(policy, {}))


def there(name, **params):
    return valid(catalogue.load("availability", name).Params, **params)


def fleet_plan(policy, clients=5, **options):
    """Clients that need 4 to 8 seconds."""
    table = prices("train", clients, down_s=1, compute_s=[2.0 + each for each in range(clients)], up_s=1)
    options = {"participants": 3, "jitter": LogNormal(sigma=0.2), **options}
    return plan([table], policy=policy, params=params_of(policy), **options)


@pytest.mark.parametrize("on_leave", ["lose", "check-at-end"])
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_policy_goes_on_while_clients_come_and_go(policy, on_leave):
    """Often nobody is there; no policy waits for ever, or goes in circles at one time."""
    availability = there("markov", on=15, off=40)
    plan_ = fleet_plan(policy, 3, rounds=25, availability=availability, on_leave=on_leave)
    ended, needs, rows = ended_by(plan_)
    assert ended[:2] == ("rounds", 25)
    assert sum(isinstance(need, Merge) for need in needs) == 25
    assert len(rows) >= 10


def ended_by(plan_, feedback=lambda _: Feedback()):
    """How a run ended, its needs, and its jobs."""
    needs, totals, chunks = [], [], [np.zeros(0, dtype=LIVE)]

    def answer(need):
        needs.append(need)
        totals.append(getattr(need, "totals", None))
        return feedback(need)

    ended = driver.converse(driver.simulate(plan_, ended=chunks.append), answer)
    return ended, needs, np.concatenate(chunks)


@given(fleets(policies=POLICIES))
def test_a_run_ends_at_the_first_limit_that_is_met(plan_):
    """Not before one is, and for the reason that it gives."""
    plan_ = replace(plan_, prices=tuple(each for each in plan_.prices if each.at == "round"))
    ended, needs, rows = ended_by(plan_)
    until = plan_.scenario.server.until
    last = [need for need in needs if isinstance(need, Evaluate)][-1]
    moved = last.totals.down_bytes + last.totals.up_bytes
    met = {
        "rounds": ended.rounds >= until.rounds,
        "time": ended[2] >= until.time,
        "bytes": until.bytes is not None and moved >= until.bytes,
        "energy": until.energy is not None and (last.totals.energy.joules or 0) >= until.energy,
    }
    assert met[ended.by]
    assert ended.rounds <= until.rounds
    assert rows["ended_s"].max(initial=0) <= until.time
    for need in needs[:-1]:
        if isinstance(need, Evaluate) and need.round < ended.rounds - 1:
            spent = need.totals
            assert need.t_s < until.time
            assert until.bytes is None or spent.down_bytes + spent.up_bytes < until.bytes
            assert until.energy is None or (spent.energy.joules or 0) < until.energy


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_run_ends_at_its_time(policy):
    """Under every policy: what is in flight then is cut, and the version then is scored."""
    ended, needs, rows = ended_by(fleet_plan(policy, until={"time": 50.0}))
    assert ended.by == "time"
    assert [need.version for need in needs if isinstance(need, Evaluate)][-1] == rows["into_version"].max()
    assert rows["ended_s"].max() == 50
    assert (rows["dispatched_s"] < 50).all()


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_run_ends_at_its_accuracy(policy):
    """After the first evaluation that meets it."""
    ended, needs, _ = ended_by(
        fleet_plan(policy, until={"rounds": 99, "accuracy": 0.5}),
        lambda need: Feedback(scores={"global": need.version / 10}),
    )
    assert ended[:2] == ("accuracy", 5)
    assert needs[-1].version == 5


@pytest.mark.parametrize(
    ("on_leave", "rows"),
    [("lose", "0,0,30 1,0,20 2,2,10"), ("pause", "9,0,30"), ("finish", "0,0,30 1,0,20 2,2,10")],
)
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_run_stops_when_nobody_comes_back(policy, rows, on_leave):
    """One clear error, also while jobs of clients that left for ever are in flight."""
    availability = there("intervals", rows=rows)
    with pytest.raises(RunError, match="nobody can be asked any more after") as caught:
        told(fleet_plan(policy, 3, rounds=99, availability=availability, on_leave=on_leave))
    assert "availability" in caught.value.hint
    assert float(re.search("after ([0-9.]+) s", caught.value.what)[1]) <= 60


@pytest.mark.parametrize(("policy", "merges"), [("fedasync", 1000), ("semi-sync", 500)])
def test_a_thousand_merges_keep_little(policy, merges, monkeypatch):
    """The jobs that are open, the versions that are kept, what waits and what is scheduled do not grow."""
    worlds, most = [], {"open": 0, "versions": 0, "scheduled": 0}
    made, count = driver.World, 0

    def kept(*args, **options):
        worlds.append(made(*args, **options))
        return worlds[0]

    def answer(need):
        nonlocal count
        if isinstance(need, Merge):
            count += 1
            (world,) = worlds
            now = {
                "open": len(world.open),
                "versions": len(need.live_versions),
                "scheduled": len(world.env._queue),  # noqa: SLF001 - what a leak would fill
            }
            most.update({name: max(most[name], size) for name, size in now.items()})
        return Feedback()

    monkeypatch.setattr(driver, "World", kept)
    driver.converse(driver.simulate(fleet_plan(policy, 3, rounds=merges, every=merges)), answer)
    assert count == merges
    assert max(most.values()) <= 10


@pytest.mark.parametrize(
    ("policy", "failures"), [("deadline", {}), ("sync", {"timeout": "1 s"}), ("fedbuff", {"timeout": "1 s"})]
)
def test_a_server_that_nothing_reaches_gives_up(policy, failures):
    """Where no upload ever comes in time, no limit of bytes is met; the run ends, with what to look at."""
    params = valid(
        catalogue.load("policies", policy).Params, **{**PARAMS, "deadline": {"seconds": 0.5}}.get(policy, {})
    )
    table = prices("train", 3, down_s=2.0, work_s=2.0)
    plan_ = plan(
        [table], until={"bytes": 1e12}, participants=3, policy=policy, params=params, failures=failures
    )
    with pytest.raises(RunError, match="1002 jobs were lost or late, and no upload has arrived"):
        told(plan_)


@pytest.mark.nightly
def test_losses_among_arrivals_end_nothing():
    """Only jobs lost in a row count: a server that half of all jobs reach goes on for ever."""
    table = prices("train", 6, work_s=2.0)
    plan_ = plan(
        [table], rounds=600, policy="fedasync", params=params_of("fedasync"), failures={"crash": 0.7}
    )
    _, needs, rows = told(plan_)
    assert (rows["ending"] == ENDINGS.index(Kind.LOST)).sum() > 1000
    assert len([need for need in needs if isinstance(need, Merge)]) == 600
