"""Laws of critical paths, and of what changes to clients would save: new runs with the changes agree."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module

import numpy as np
import pytest
from fleets import fleets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plans import in_cells, with_server
from recorded import recorded

from edgefl.analysis.explain.again import Again
from edgefl.analysis.explain.causes import CAUSES
from edgefl.analysis.explain.explain import Explainer
from edgefl.analysis.explain.path import PHASES
from edgefl.analysis.explain.savings import CHANGES
from edgefl.core.samplers.fixed import Params as Fixed
from edgefl.planning.fleets import devices_of
from edgefl.planning.learning import DataAccess
from edgefl.planning.medians import Medians
from edgefl.planning.plan import plan
from edgefl.planning.recorded import Recorded
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


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(fleets(), RATES, RATES, st.none() | st.integers(1, 4))
def test_parts_follow_each_other_and_sum_to_their_round(plan_, uplink, downlink, size):
    """Whatever the policy, the fleet and what clients share: rounds from start to end, by their causes."""
    plan_ = with_server(plan_, uplink=uplink, downlink=downlink)
    plan_ = in_cells(plan_, 3e6, size) if size else plan_
    with recorded(plan_) as reader:
        if not reader.rows("merges"):
            return
        found = Explainer(reader, Recorded(plan_, {}, {}))
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
def planned(method="spherefed", slowdown="lognormal"):
    """What a run of a method is planned of."""
    spread = {"lognormal": {"sigma": 0.5}, "half-normal": {"scale": 0.5}}[slowdown]
    fleet = {**SCENARIO["fleet"], "slowdown": {"name": slowdown, **spread}}
    return of({**SCENARIO, "method": method, "fleet": fleet})


def of(scenario):
    """What a scenario's run is planned of."""
    (draft,) = drafts(scenario)
    found = plan(draft, DataAccess(need="embedded")).plan
    return Recorded(found, devices_of(found.fleet, ""), dict(found.fleet.links))


def explained(given):
    """The explainer of a plan's run."""
    with recorded(given.plan) as reader:
        return Explainer(reader, given)


def merged_s(plan_):
    """When each version of a plan's run is merged: it runs in the world."""
    found = []

    def noted(need):
        if isinstance(need, Merge):
            found.append(need.t_s)
        return Feedback()

    converse(simulate(plan_), noted)
    return np.array(found)


def rounds_s(found, plan_):
    """How long the rounds of a plan's run in the world last."""
    ends_s = merged_s(plan_)[found.rounds.last]
    return np.diff(ends_s, prepend=0.0)


def with_client(given, client, taken=None, **columns):
    """A plan in which a client is of a kind of its own, with other columns, priced by the repricer.

    ``taken`` is a kind whose steps it takes.
    """
    clients = given.plan.clients
    old = int(clients.kind[client])
    alone = np.count_nonzero(clients.kind == old) == 1
    kind = old if alone else len(given.plan.prices[0].work_s)
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
    columns = {
        name: np.append(values, values[kind])
        for name, values in vars(prices).items()
        if isinstance(values, np.ndarray)
    }
    return replace(prices, **columns, corners=None, taken=(*prices.taken, prices.taken[kind]))


def renamed(given, change, client, to):
    """A plan in which a client has what it would have after a change."""
    clients = given.plan.clients
    if change == "link":
        return with_client(given, client, link=clients.links.index(to))
    if change == "device":
        return with_client(given, client, device=clients.devices.index(to))
    samples = int(to.split()[0].replace(",", ""))
    other = int(clients.kind[np.flatnonzero(clients.samples == samples)[0]])
    return with_client(given, client, samples=samples, taken=other)


@pytest.mark.parametrize("change", ["link", "device", "work"])
@pytest.mark.parametrize("method", ["spherefed", "fedavg"])
def test_a_new_run_with_the_change_takes_the_time_that_was_predicted(change, method):
    """Round for round, for each client that would have something else: the world runs with it."""
    given = planned(method)
    found = explained(given)
    before_s = rounds_s(found, given.plan)
    tried, saved = 0, 0.0
    for client in range(len(given.plan.clients)):
        if to := found.savings.to(change, client):
            after_s = rounds_s(found, renamed(given, change, client, to))
            predicted_s = found.savings.one(change, client)
            assert before_s - after_s == pytest.approx(predicted_s, rel=1e-9, abs=1e-9)
            tried, saved = tried + 1, saved + float(predicted_s.sum())
    assert tried >= 2
    assert saved > 0


def test_a_new_run_without_slowdown_and_jitter_takes_the_time_that_was_predicted():
    """Of all clients at once."""
    given = planned(slowdown="half-normal")
    found = explained(given)
    plan_ = given.plan
    fast = replace(
        plan_,
        clients=replace(plan_.clients, slowdown=np.ones(len(plan_.clients))),
        fleet=plan_.fleet.model_copy(update={"jitter": Fixed()}),
    )
    saved_s = rounds_s(found, plan_) - rounds_s(found, fast)
    assert (saved_s > 0).any()
    assert found.savings.everyone("speed") == pytest.approx(saved_s, rel=1e-9, abs=1e-9)


def test_nothing_saves_more_than_a_round_or_less_than_nothing():
    """Made to one client, or to all; all save at least as much as one, and in a round as its client alone."""
    found = explained(planned())
    whole_s = found.rounds.to_s - found.rounds.from_s
    for change in CHANGES:
        every = found.savings.everyone(change)
        assert (every <= whole_s * (1 + 1e-9)).all()
        for client in range(9):
            one = found.savings.one(change, client)
            assert (one >= 0).all()
            assert (one <= every + 1e-12).all()
    explanation = found.run()
    assert any(one.saved_s > 0 for one in explanation.savings)
    for row in explanation.rounds:
        for saving in found.round(row.round).savings or ():
            assert 0 <= saving.saved_s <= row.seconds * (1 + 1e-9)


def test_a_client_that_keeps_what_it_has_stays_last():
    """And a round that a change makes shorter than its client's job waits for another."""
    found, changed = explained(planned()), 0
    for row in found.run().rounds:
        if row.round < 0:
            continue
        for saving in found.round(row.round).savings:
            assert saving.to or saving.then_client == row.client
            changed += saving.then_client != row.client
    assert changed


def test_a_fleet_of_identical_clients_saves_nothing():
    """The same device, link, samples and speed: whoever is last is no slower than the median."""
    same = {
        "fleet": {"members": [{"device": "raspberry-pi-4b", "link": "4g"}]},
        "task": {"dataset": "digits", "clients": 9, "partition": {"name": "iid"}},
        "local": {"steps": 3, "batch_size": 16},
    }
    found = explained(of({**SCENARIO, **same}))
    assert [one.saved_s for one in found.run().savings] == [0, 0, 0, 0]
    assert {saving.to for saving in found.round(0).savings} == {""}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"server": {**SCENARIO["server"], "policy": "fedasync"}, "method": "fedavg"}, ["policy fedasync"]),
        ({"server": {**SCENARIO["server"], "selector": "fastest"}}, ["selector fastest"]),
        ({"server": {**SCENARIO["server"], "until": {"time": "1 h"}}}, ["until.time"]),
        ({"fleet": {**SCENARIO["fleet"], "speed": ["thermal"]}}, ["speed thermal"]),
        ({"fleet": {**SCENARIO["fleet"], "failures": {"crash": 0.1}}}, ["failures"]),
        ({"local": {"epochs": {"fit": "1 s", "most": 2}}}, ["local training that fits into a time"]),
    ],
)
def test_savings_of_a_client_are_unknown_where_other_times_make_another_run(changes, words):
    """And the explanation says what depends on times; the paths are there."""
    given = of({**SCENARIO, **changes})
    assert not is_blind(given.plan)
    assert list(sights(given.plan)) == words
    found = explained(given)
    assert found.round(0).savings is None
    explanation = found.run()
    assert {one.savings for one in explanation.clients} == {None}
    assert list(explanation.unknown_since) == words
    assert found.round(0).path
    assert set(PHASES) > {part.phase for part in found.round(0).path}


@pytest.mark.parametrize("change", CHANGES)
def test_another_run_of_the_clock_saves_what_jobs_timed_again_do(change):
    """Where both are known. Clients that are quicker than their devices' full speed stay so."""
    given = planned()
    found = explained(given)
    again = Again(given.plan, Medians(given), merged_s(given.plan), lambda *_: None)
    assert again.is_known
    saved_s = float(found.savings.everyone(change).sum())
    assert again.saved_s(change) == pytest.approx(saved_s, rel=1e-9)


def of_policy(policy, **changes):
    """The explanation of a run with a policy of its own."""
    scenario = {**SCENARIO, "method": "fedavg", "server": {**SCENARIO["server"], "policy": policy}}
    return explained(of({**scenario, **changes})).run()


@pytest.mark.parametrize(
    "policy", ["fedasync", "fedbuff", "overselect", {"name": "deadline", "quantile": 0.8}]
)
def test_the_clock_runs_again_where_other_times_make_another_run(policy):
    """To as many merges; a fleet without slowdown is faster with any policy."""
    saved = {one.change: one.saved_s for one in of_policy(policy).savings}
    assert set(saved) == set(CHANGES)
    assert saved["speed"] > 0


@pytest.mark.parametrize(
    "changes",
    [
        {"server": {"participants": 4, "until": {"rounds": 6, "energy": "1000 kJ"}}},
        {"local": {"epochs": {"fit": "1 s", "most": 2}}},
        {"fleet": {**SCENARIO["fleet"], "availability": {"name": "charging"}}},
    ],
)
def test_the_clock_does_not_run_again_where_more_than_times_would_change(changes):
    """Energies and steps."""
    found = explained(of({**SCENARIO, **changes}))
    assert found.run().savings is None


def test_the_clock_does_not_run_again_where_it_goes_another_way(monkeypatch):
    """As where a selector saw losses that are not there without training: it stops where that shows first."""
    given = planned()
    merges_s, asked = merged_s(given.plan), []
    assert Again(given.plan, Medians(given), merges_s, lambda *_: None).is_known
    merges_s[1] *= 2
    monkeypatch.setattr(
        import_module("edgefl.analysis.explain.again"), "Feedback", lambda: asked.append(1) or Feedback()
    )
    assert not Again(given.plan, Medians(given), merges_s, lambda *_: None).is_known
    assert len(asked) < len(merges_s)


def test_what_runs_again_is_shown(monkeypatch):
    """A long run's clock takes a while, once as it was and once for each change."""
    monkeypatch.setattr(import_module("edgefl.analysis.explain.again"), "_SHOWN_EVERY", 1)
    given, shown = planned(), []
    again = Again(given.plan, Medians(given), merged_s(given.plan), lambda *step: shown.append(step))
    for change in CHANGES:
        again.saved_s(change)
    total = len(merged_s(given.plan)) * (1 + len(CHANGES))
    assert shown == [("running the clock again", done + 1, total) for done in range(total)]


def test_a_device_that_throttles_is_not_exchanged():
    """Another one would throttle otherwise."""
    found = of_policy("sync", fleet={**SCENARIO["fleet"], "speed": ["thermal"]})
    assert {one.change for one in found.savings} == set(CHANGES) - {"device"}
