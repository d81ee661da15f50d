"""Laws of jobs at other prices: at their own they took what they took, at a corner what a run there takes."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from nightly import sampled
from plans import plan as hand_made
from plans import prices as exchange
from plans import told
from recorded import dry

from edgefl.analysis.repricing import Columns, Repriced, priceable
from edgefl.analysis.run import Run as Opened
from edgefl.analysis.summary import summary
from edgefl.core.speed.thermal import Params as Thermal
from edgefl.planning.fleets import devices_of
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.planning.repricing import Repricer
from edgefl.runs.group import drafts
from edgefl.store.plans import read_prices
from edgefl.world.blind import is_blind
from edgefl.world.driver import converse, simulate
from edgefl.world.needs import Evaluate, Feedback

SCENARIO = {
    "task": {"dataset": "digits", "clients": 12, "partition": {"name": "dirichlet", "alpha": 0.5}},
    "model": {"name": "mlp", "hidden": [64]},
    "method": "spherefed",
    "local": {"epochs": 2, "batch_size": 16},
    "fleet": {
        "members": [
            {"device": "raspberry-pi-4b", "link": "wifi-pi4"},
            {"device": "laptop-cpu", "link": "4g"},
        ],
        "slowdown": {"name": "lognormal", "sigma": 0.5},
        "jitter": {"name": "half-normal", "scale": 0.3},
    },
    "server": {"rounds": 5, "participants": 5},
    "evaluate": {"every": 2},
}
OTHERS = {
    "sync": {},
    "fedasync": {"concurrency": 4},
    "deadline": {"quantile": 0.5},
}


@cache
def planned(policy="sync", selector="random", uplink=None):
    """A plan with corners at half and twice each price."""
    server = {**SCENARIO["server"], "policy": {"name": policy, **OTHERS[policy]}, "selector": selector}
    server["uplink"] = uplink
    method = SCENARIO["method"] if policy == "sync" else "fedavg"
    (draft,) = drafts({**SCENARIO, "server": server, "method": method})
    found = plan(draft, DataAccess(need="embedded"))
    prices = tuple(widened(one, 2.0) for one in found.plan.prices)
    return replace(found, plan=replace(found.plan, prices=prices))


def widened(prices, spread):
    """Prices with corners, where everything takes so much less or more."""
    more = ("work_s", "down_delay_s", "up_delay_s", "idle_w", "compute_w", "radio_w", "tail_w", "tail_s")
    ends = []
    for factor in (1 / spread, spread):
        changed = {name: getattr(prices.demand, name) * factor for name in more}
        changed |= {name: getattr(prices.demand, name) / factor for name in ("down_bps", "up_bps")}
        ends.append(prices.demand._replace(**changed))
    return replace(prices, corners=tuple(ends))


def evaluated(plan_):
    """When a plan's run evaluates, the server's version then, and the energy until then."""
    told = []

    def noted(need):
        if isinstance(need, Evaluate):
            told.append((need.t_s, need.version, need.totals.energy.joules))
        return Feedback()

    converse(simulate(plan_, lambda _: None, lambda _: None), noted)
    return told


def summed(found, look=lambda _: None):
    """A run's summary, and what ``look`` finds in its rows."""
    with dry(found) as reader:
        return summary(reader), look(reader)


@sampled(1, "policy", OTHERS)
def test_at_their_own_prices_each_stage_took_what_it_took(policy):
    """Each job's joules by stage, of its row's tails, and of those open at the end."""
    found = planned(policy)
    sql = """
    SELECT receive_j + receive_idle_j AS receive, work_j + work_idle_j AS work,
      transmit_j + transmit_idle_j AS transmit, earlier_tail_j, work_tail_j, IFNULL(joules, 0.0) AS open
    FROM jobs LEFT JOIN settled_tails USING (client, job) ORDER BY job
    """

    def again(reader):
        prices = [one.demand for one in read_prices(reader)]
        own = Repriced(Opened(reader).repriced, prices, prices, blind=reader.meta["blind"])
        taken = own.taken(reader.meta["virtual_s"])
        both = np.array([*taken.stage_j, *taken.tail_j])
        return both, reader.query(sql), own.joules(reader.meta["virtual_s"])

    result, (taken, rows, joules) = summed(found, again)
    told = [list(row.values()) for row in rows]
    np.testing.assert_allclose(taken.T, told, rtol=1e-9, atol=1e-12)
    assert joules == pytest.approx(result.energy.joules, rel=1e-9)
    assert (taken[-1] > 0).any() == (policy != "sync")


def test_work_that_fits_into_a_time_is_not_blind_to_it():
    """On other numbers clients would do more or fewer epochs, so the run's times have no bounds."""
    (draft,) = drafts({**SCENARIO, "local": {"epochs": {"fit": "60 ms", "most": 5}, "batch_size": 16}})
    assert not is_blind(plan(draft, DataAccess(need="embedded")).plan)


def test_throttled_jobs_took_what_they_took():
    """Also where heat lowers the power: work that takes twice as long takes its energy above idle once."""
    found = planned()
    hot = Thermal.model_validate({"onset": "0 s", "fall": "1 s", "floor": 0.5, "recovery": "1000 h"})
    fleet = found.plan.fleet.model_copy(update={"speed": (hot,)})
    found = replace(found, plan=replace(found.plan, fleet=fleet))

    def again(reader):
        prices, jobs = [one.demand for one in read_prices(reader)], Opened(reader).repriced
        return Repriced(jobs, prices, prices, blind=False).joules(reader.meta["virtual_s"]), jobs

    result, (joules, jobs) = summed(found, again)
    assert (jobs.full_power_s < 0.99 * jobs.work_s).any()
    assert not is_blind(found.plan)
    assert joules == pytest.approx(result.energy.joules, rel=1e-9)
    low, high = result.joules_between
    assert low < joules < high


@pytest.mark.parametrize("selector", ["random", "round-robin"])
@pytest.mark.parametrize("end", [0, 1])
def test_corners_are_what_a_run_there_takes(selector, end):
    """Where a run is blind to time, its bounds are the time and energy of a run on the corners' numbers.

    In all, and until each evaluation.
    """
    found = planned(selector=selector)
    there = tuple(replace(one, demand=one.corners[end], corners=None) for one in found.plan.prices)
    other = replace(found, plan=replace(found.plan, prices=there))
    here, at_corner = evaluated(found.plan), evaluated(other.plan)

    def bounded(reader):
        run = Opened(reader)
        return [(run.between_s(*one[:2])[end], run.between_j(*one[:2])[end]) for one in here]

    (bounds, until), (result, _) = summed(found, bounded), summed(other)
    assert bounds.virtual_s_between[end] == pytest.approx(result.virtual_s, rel=1e-9)
    assert bounds.joules_between[end] == pytest.approx(result.energy.joules, rel=1e-9)
    for one, (t_s, _, joules) in zip(until, at_corner, strict=True):
        assert one == pytest.approx((t_s, joules), rel=1e-9)


@pytest.mark.parametrize("policy", OTHERS)
def test_what_was_spent_until_an_evaluation_is_spent_again(policy):
    """Stages under way and open tails count as far as they got, as in the run's own totals."""
    found = planned(policy)
    told = evaluated(found.plan)

    def again(reader):
        prices = [one.demand for one in read_prices(reader)]
        own = Repriced(Opened(reader).repriced, prices, prices, blind=reader.meta["blind"])
        return [own.joules(t_s, version) for t_s, version, _ in told]

    _, joules = summed(found, again)
    assert len(told) > 1
    assert joules == pytest.approx([one[2] for one in told], rel=1e-9)


def test_a_lower_bound_of_work_is_one_of_the_run():
    """Without an upper bound of one kind's work, neither time nor energy has one, and the times say so."""
    for policy in OTHERS:
        found = planned(policy)
        cheap, costly = zip(*(one.corners for one in found.plan.prices), strict=True)
        open_ = [one._replace(work_s=np.full_like(one.work_s, np.nan)) for one in costly]
        prices = tuple(
            replace(one, corners=(low, high))
            for one, low, high in zip(found.plan.prices, cheap, open_, strict=True)
        )
        result, _ = summed(replace(found, plan=replace(found.plan, prices=prices)))
        assert result.virtual_s_between.high is None
        assert result.joules_between.high is None
        assert 0 < result.joules_between.low < result.energy.joules


def test_exchanges_that_take_turns_have_their_own_prices():
    """Jobs of two exchanges in turn: the energy is that of each, also where one alone becomes dearer."""
    draw = {"compute_w": 5, "idle_w": 1}
    table = (exchange("train", 3, compute_s=10, **draw), exchange("share", 3, compute_s=2, every=2, **draw))
    plan_ = hand_made(table, rounds=5)
    rows = told(plan_)[2]
    rows = rows[np.argsort(rows["job"])]
    jobs, end_s = (
        priceable(Columns({name: rows[name] for name in rows.dtype.names}), plan_.clients.kind),
        rows["ended_s"].max(),
    )
    shares = int((rows["exchange"] == 1).sum())
    assert 0 < shares < len(rows) / 2
    whole = 6.0 * (10 * (len(rows) - shares) + 2 * shares)
    own = [one.demand for one in table]
    assert Repriced(jobs, own, own, blind=False).joules(end_s) == pytest.approx(whole)
    dearer = (own[0], own[1]._replace(idle_w=own[1].idle_w + 10))
    assert Repriced(jobs, own, dearer, blind=False).joules(end_s) == pytest.approx(whole + 20 * shares)


def test_models_that_take_alike_steps_have_their_own_costs():
    """Priced again on the plan's own numbers, each kind of client has the plan's prices."""
    models = [{"name": "mlp", "hidden": [size]} for size in (16, 256)]
    partition = {"name": "iid"}
    task = {**SCENARIO["task"], "partition": partition}
    (draft,) = drafts({**SCENARIO, "task": task, "model": models, "method": "local"})
    found = plan(draft, DataAccess(need="embedded"))
    again = Repricer(found.plan).prices(devices_of(found.plan.fleet, ""), found.plan.fleet.links)
    for one, own in zip(again, found.plan.prices, strict=True):
        assert len(set(own.demand.work_s.tolist())) > 2
        assert one.demand.work_s.tolist() == own.demand.work_s.tolist()
