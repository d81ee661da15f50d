"""Laws of critical paths, and of what changes to clients would save: new runs with the changes agree."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from fleets import fleets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nightly import sampled
from plans import in_cells, with_server
from recorded import recorded

from edgefl.analysis.explain.explain import CAUSES, CHANGES, MEDIAN, TOP, Again, Explainer, Medians
from edgefl.analysis.explain.path import PHASES
from edgefl.planning.fleets import devices_of
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.planning.repricing import Repricer
from edgefl.runs.group import drafts
from edgefl.world.blind import is_blind, sights
from edgefl.world.driver import converse, simulate
from edgefl.world.needs import Feedback, Merge

SCENARIO = {
    "task": {"dataset": "digits", "clients": 9, "partition": {"name": "dirichlet", "alpha": 0.5}},
    "model": {"name": "mlp", "hidden": [64]},
    "method": "spherefed",
    "local": {"epochs": 1, "batch_size": 16},
    "fleet": {
        "members": [
            {"device": "raspberry-pi-4b", "link": "wifi-pi4"},
            {"device": "laptop-cpu", "link": "4g", "share": 2},
            {"device": "raspberry-pi-zero-2w", "link": "3g"},
        ],
        "slowdown": {"name": "lognormal", "sigma": 0.5},
        "jitter": {"name": "half-normal", "scale": 0.3},
    },
    "server": {"rounds": 6, "participants": 4},
    "evaluate": {"every": 6},
}


# Of the server's link; clients' own are of 1 to 8 Mbit/s.
RATES = st.none() | st.floats(1e6, 1e8)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(fleets(), RATES, RATES, st.none() | st.integers(1, 4))
def test_parts_follow_each_other_and_sum_to_their_round(plan_, uplink, downlink, size):
    """Whatever the policy, the fleet and what clients share: rounds from start to end, by their causes."""
    plan_ = with_server(plan_, uplink=uplink, downlink=downlink)
    plan_ = in_cells(plan_, 3e6, size) if size else plan_
    with recorded(plan_) as reader:
        if not reader.rows("merges"):
            return
        found = Explainer(reader, plan_, {})
    rounds, parts, causes = found.rounds, found.parts, found.causes
    assert (parts.to_s > parts.from_s).all()
    for place in range(len(rounds.number)):
        mine = parts.round == place
        from_s, to_s = parts.from_s[mine], parts.to_s[mine]
        if rounds.to_s[place] > rounds.from_s[place]:
            assert (from_s[0], to_s[-1]) == (rounds.from_s[place], rounds.to_s[place])
            assert from_s[1:].tolist() == to_s[:-1].tolist()
        else:
            assert not mine.any()
    assert (causes >= 0).all()
    assert causes.sum(axis=1) == pytest.approx(parts.to_s - parts.from_s, rel=1e-9, abs=1e-9)
    if uplink is None and downlink is None and size is None:
        assert not causes[:, CAUSES.index("sharing")].any()


@cache
def planned():
    """What the scenario's run is planned of."""
    return of(SCENARIO)


def of(scenario):
    """What a scenario's run is planned of."""
    (draft,) = drafts(scenario)
    found = plan(draft, DataAccess(need="embedded")).plan
    return SimpleNamespace(plan=found, devices=devices_of(found.fleet, ""), links=found.fleet.links)


def explained(given):
    """The explainer of a plan's run."""
    with recorded(given.plan) as reader:
        return Explainer(reader, given.plan, given.devices)


def merged_s(plan_):
    """When each version of a plan's run is merged: it runs in the world."""
    found = []

    def noted(need):
        if isinstance(need, Merge):
            found.append(need.t_s)
        return Feedback()

    converse(simulate(plan_), noted)
    return np.array(found)


def again(given):
    """What runs the clock of a plan again."""
    return Again(given.plan, Medians(given.plan, given.devices), merged_s(given.plan), 0, lambda *_: None)


def with_client(given, client, taken=None, **columns):
    """A plan in which a client is of a kind of its own, with other columns, priced by the repricer.

    ``taken`` is a kind whose steps it takes.
    """
    clients = given.plan.clients
    old = int(clients.kind[client])
    alone = np.count_nonzero(clients.kind == old) == 1
    kind = old if alone else len(given.plan.prices[0].demand.work_s)
    for name, value in {**columns, "kind": kind}.items():
        column = getattr(clients, name).copy()
        column[client] = value
        clients = replace(clients, **{name: column})
    prices = [one if alone else longer(one, old) for one in given.plan.prices]
    if taken is not None:
        steps = [(*one.taken[:kind], one.taken[taken], *one.taken[kind + 1 :]) for one in prices]
        prices = [replace(one, taken=each) for one, each in zip(prices, steps, strict=True)]
    there = replace(given.plan, clients=clients, prices=tuple(prices))
    return replace(there, prices=Repricer(there).prices(given.devices, given.links))


def longer(prices, kind):
    """Prices with another kind at the end, like one of them."""
    demand = prices.demand.taken([*range(len(prices.taken)), kind])
    return replace(prices, demand=demand, corners=None, taken=(*prices.taken, prices.taken[kind]))


def others(given, change, client):
    """The plans in which a client has another one's link, device or samples, priced by the repricer."""
    clients = given.plan.clients
    for other in range(len(clients)):
        if change == "work":
            taken = int(clients.kind[other])
            yield with_client(given, client, samples=int(clients.samples[other]), taken=taken)
        else:
            yield with_client(given, client, **{change: getattr(clients, change)[other]})


def priced(plan_, client, names):
    """Columns of a client's prices in each exchange."""
    kind = int(plan_.clients.kind[client])
    return [
        {name: pytest.approx(getattr(one.demand, name)[kind], rel=1e-12) for name in names}
        for one in plan_.prices
    ]


@sampled(1, "change", MEDIAN)
def test_a_new_run_with_the_change_takes_the_time_that_was_predicted(change):
    """For each client that would have something else, which is something that another client has."""
    given = planned()
    changes, found, tried = getattr(Medians(given.plan, given.devices), change)(), again(given), 0
    before_s = merged_s(given.plan)[-1]
    for client, kind in enumerate(given.plan.clients.kind.tolist()):
        predicted_s = found.saved_s(client)[change]
        if kind not in changes:
            assert predicted_s == 0
            continue
        row = changes[kind]
        plan_ = next(one for one in others(given, change, client) if row == priced(one, client, row[0]))
        assert before_s - merged_s(plan_)[-1] == pytest.approx(predicted_s, rel=1e-9, abs=1e-9)
        tried += predicted_s > 0
    assert tried


def slowest_s(given, work_s):
    """How long a plan's run takes that is blind to time, if jobs' work takes as long as a function says."""
    with recorded(given.plan) as reader:
        places = {row["exchange"]: row["place"] for row in reader.rows("exchanges")}
        longest = {}
        for job in reader.rows("jobs"):
            took_s = job["receive_s"] + work_s(job, places[job["exchange"]]) + job["transmit_s"]
            longest[job["into_version"]] = max(longest.get(job["into_version"], 0.0), took_s)
    return sum(longest.values())


def test_without_slowdown_the_slowest_jobs_are_as_much_shorter():
    """Of one client, or of all; clients that are quicker than their devices stay so."""
    given = planned()
    found, slowdown = again(given), np.maximum(given.plan.clients.slowdown, 1.0)
    before_s = slowest_s(given, lambda job, _: job["work_s"])
    assert before_s == pytest.approx(merged_s(given.plan)[-1])
    saved = []
    for whom in (None, *range(len(slowdown))):
        quick = np.where((np.arange(len(slowdown)) == whom) | (whom is None), slowdown, 1.0)
        after_s = slowest_s(given, lambda job, _, quick=quick: job["work_s"] / quick[job["client"]])
        saved.append(before_s - after_s)
        assert found.saved_s(whom)["slowdown"] == pytest.approx(saved[-1], rel=1e-9, abs=1e-9)
    assert saved[0] >= max(saved[1:]) > 0


def test_without_jitter_work_takes_what_it_was_priced_at():
    """Times the client's slowdown."""
    given = planned()
    clients, prices = given.plan.clients, given.plan.prices

    def work_s(job, place):
        return prices[place].demand.work_s[clients.kind[job["client"]]] * clients.slowdown[job["client"]]

    saved_s = merged_s(given.plan)[-1] - slowest_s(given, work_s)
    assert saved_s > 0
    assert again(given).saved_s()["jitter"] == pytest.approx(saved_s, rel=1e-9)


@sampled(
    2,
    ("changes", "words"),
    [
        ({"server": {**SCENARIO["server"], "policy": "fedasync"}, "method": "fedavg"}, ["policy fedasync"]),
        ({"server": {**SCENARIO["server"], "selector": "fastest"}}, ["selector fastest"]),
        ({"fleet": {**SCENARIO["fleet"], "speed": ["thermal"]}}, ["speed thermal"]),
        ({"local": {"epochs": {"fit": "1 s", "most": 2}}}, ["local training that fits into a time"]),
    ],
)
def test_what_depends_on_times_is_told(changes, words):
    """The paths are there; savings are known of the first clients where they are known of all."""
    given = of({**SCENARIO, **changes})
    assert not is_blind(given.plan)
    assert list(sights(given.plan)) == words
    found = explained(given)
    explanation = found.run()
    assert list(explanation.unknown_since) == words
    assert (explanation.savings is None) == (explanation.unsaved == "world") == ("fit" in str(changes))
    for one in explanation.clients[:TOP]:
        assert (one.savings is None) == (explanation.savings is None)
    assert found.round(0).path
    assert set(PHASES) > {part.phase for part in found.round(0).path}


def of_policy(policy, **changes):
    """The explanation of a run with a policy of its own."""
    scenario = {**SCENARIO, "method": "fedavg", "server": {**SCENARIO["server"], "policy": policy}}
    return explained(of({**scenario, **changes})).run()


@pytest.mark.parametrize("policy", ["fedasync", {"name": "deadline", "quantile": 0.8}])
def test_the_clock_runs_again_where_other_times_make_another_run(policy):
    """To as many merges; a fleet without slowdown is faster with any policy."""
    saved = of_policy(policy).savings
    assert set(saved) == set(CHANGES)
    assert saved["slowdown"] > 0


def test_a_device_that_throttles_is_not_exchanged():
    """Another one would throttle otherwise."""
    found = of_policy("sync", fleet={**SCENARIO["fleet"], "speed": ["thermal"]})
    assert set(found.savings) == set(CHANGES) - {"device"}
