"""Settings, figures and Pareto fronts of the groups of a page, and published savings beside theirs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from compared import at, rich
from hypothesis import given
from hypothesis import strategies as st
from paged import compared, paged

import edgefl
from edgefl.core.ledger import EnergyTotal
from edgefl.planning.profile import profile
from edgefl.planning.published import claimed_savings
from edgefl.report.averages import seeds_together
from edgefl.report.differing import differing
from edgefl.report.page.sections.sweep import front, sweep
from edgefl.report.summary import summaries
from edgefl.runs import drafts

COSTS = {"virtual_s", "down_bytes + up_bytes", "joules"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Five runs: two methods, one of them without a global model, at two rates; one group of two seeds."""
    runs = [
        {"name": "fedavg slow", "local.optimizer.lr": 0.1},
        {"name": "fedavg fast", "local.optimizer.lr": 0.4, "seed": 0},
        {"name": "fedavg fast", "local.optimizer.lr": 0.4, "seed": 1},
        {"name": "heads slow", "method": "fedclassavg", "local.optimizer.lr": 0.1},
        {"name": "heads fast", "method": "fedclassavg", "local.optimizer.lr": 0.4},
    ]
    target = tmp_path_factory.mktemp("sweep") / "sweep"
    return rich(target, fleet="home-lab", sweep={"runs": runs}).folder


@pytest.fixture(scope="module")
def page(folder):
    """Their page."""
    return paged(folder)


def test_settings_are_those_of_the_terminals_comparison(page, folder):
    """Each group's, without those that it lacks only because its method is another."""
    found = differing(seeds_together(summaries([folder])))
    assert [one["settings"] for one in page["groups"]] == [
        {key: values[place] for key, values in found.items()} for place in range(len(page["groups"]))
    ]


def test_figures_are_those_of_compare(page, folder):
    """Each group's mean of each figure, by its key in `edgefl compare --json`."""
    told = compared(folder)
    assert {one["key"] for one in page["sweep"]["figures"]} == {
        *COSTS,
        "accuracy.global.value",
        "accuracy.personal.value",
    }
    for one in page["sweep"]["figures"]:
        for group, value in zip(page["groups"], one["values"], strict=True):
            each = [told["runs"][run] for run in group["runs"]]
            if value is None:
                assert one["key"].startswith("accuracy.global")
                assert each[0]["method"] == "fedclassavg"
            else:
                found = [at(run, one["key"]) for run in each]
                assert value == pytest.approx(sum(found) / len(found), rel=1e-12)


def test_there_is_a_front_for_each_model_and_cost(page):
    """Of the global model without the groups that have none."""
    figures = page["sweep"]["figures"]
    keys = {(figures[one["accuracy"]]["key"], figures[one["cost"]]["key"]) for one in page["sweep"]["fronts"]}
    assert keys == {(f"accuracy.{model}.value", cost) for model in ("global", "personal") for cost in COSTS}
    for one in page["sweep"]["fronts"]:
        accuracies, costs = figures[one["accuracy"]]["values"], figures[one["cost"]]["values"]
        known = [group for group in range(4) if accuracies[group] is not None]
        assert one["groups"] == by_definition({group: (costs[group], accuracies[group]) for group in known})
        assert len(known) == (2 if "global" in figures[one["accuracy"]]["key"] else 4)


def by_definition(points):
    """Those that no other beats, by cost; of equal ones in the order of their keys."""
    kept = [
        key
        for key, (cost, gain) in points.items()
        if not any(
            other_cost <= cost and other_gain >= gain and (other_cost, other_gain) != (cost, gain)
            for other_cost, other_gain in points.values()
        )
    ]
    return sorted(kept, key=lambda key: (points[key][0], key))


FEW = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@given(points=st.dictionaries(st.integers(0, 30), st.tuples(FEW | st.floats(0, 1), FEW | st.floats(0, 1))))
def test_a_front_is_what_no_point_beats(points):
    """Whatever the points are, equal ones and equal costs among them: the definition, and its order."""
    assert front(dict(sorted(points.items()))) == by_definition(points)


def test_front_by_hand():
    """Less accurate at the same cost, dearer at the same accuracy, and both worse are beaten; twins stay."""
    points = {0: (2.0, 0.8), 1: (1.0, 0.6), 2: (2.0, 0.7), 3: (3.0, 0.8), 4: (4.0, 0.9), 5: (1.0, 0.6)}
    assert front(points) == [1, 5, 0, 4]
    assert front({}) == []


def test_unfinished_and_unknown_groups_are_on_no_front(folder):
    """A failed run's figures so far stand in the table alone; an energy of some clients is no figure."""
    runs = summaries([folder])
    whole = sweep(seeds_together(runs))
    ended = {group for one in whole.fronts for group in one.groups}
    assert {0, 1} & ended
    failed = sweep(seeds_together([replace(run, status="failed") for run in runs[:1]] + runs[1:]))
    assert all(0 not in one.groups for one in failed.fronts)
    assert all(one.values[0] is not None for one in failed.figures if one.key in COSTS)
    partly = [replace(run, energy=EnergyTotal(1.0, 1, run.energy.energy_clients)) for run in runs]
    found = sweep(seeds_together(partly))
    assert next(one.values for one in found.figures if one.key == "joules") == [None] * 4
    assert {found.figures[one.cost].key for one in found.fronts} == COSTS - {"joules"}


def test_one_group_is_no_sweep(folder):
    """Nobody is ahead."""
    one = sweep(seeds_together(summaries([folder])[:1]))
    assert (one.figures, one.fronts) == ([], [])


CLAIMED = {
    "task": {"dataset": "digits", "clients": 4},
    "model": {"name": "mlp", "hidden": [32]},
    "method": "fedavg",
    "fleet": {
        "members": [{"device": name, "link": "ethernet"} for name in ("raspberry-pi-4b", "laptop-cpu")]
    },
    "server": {"rounds": 1},
    "published": [
        {"method": "spherefed", "latency": 0.136, "memory": 0.105, "source": "a paper", "why": "a reason"},
        {"method": "fedprox", "against": "flexchill", "latency": 0.2, "source": "another paper"},
    ],
}


def claims(tmp_path, **changes):
    """The claims of a page of runs that train nothing."""
    return paged(edgefl.run({**CLAIMED, **changes}, engine="null", out=tmp_path / "runs").folder)


def test_savings_are_those_of_the_profile(tmp_path):
    """Where every client has the same samples, a run's plan says what `edgefl profile` says."""
    task = {"dataset": "digits", "clients": 4, "samples": 100}
    changes = {"task": task, "sweep": {"method": ["fedavg", "spherefed"]}}
    page = claims(tmp_path, **changes)
    latency, memory, missing = page["published"]
    runs = drafts({**CLAIMED, **changes}, ())
    expected, _ = claimed_savings(runs, [profile(one) for one in runs])
    assert [one["device"] for one in latency["ours"]] == [row.device for row in expected.ours]
    for one, row in zip(latency["ours"], expected.ours, strict=True):
        assert one["saved"] == pytest.approx(row.latency, rel=1e-9)
        assert one["against"] == pytest.approx(row.against_s, rel=1e-9)
        assert (one["group"], one["against_group"], one["model"]) == (1, 0, "mlp")
    for one, row in zip(memory["ours"], expected.ours, strict=True):
        assert one["saved"] == pytest.approx(row.memory, rel=1e-9)
        assert one["against"] == row.against_bytes
    assert (latency["published"], memory["published"]) == (0.136, 0.105)
    assert (latency["unit"], memory["unit"], latency["figure"]) == ("s", "B", "latency")
    assert (latency["note"], latency["source"], latency["why"]) == ("a reason", "a paper", "")
    assert (missing["ours"], missing["why"]) == ([], "there is no run of fedprox or of flexchill")


def test_pairs_differ_in_nothing_else(tmp_path):
    """Each seed and rate with its own; runs that differ in more are not compared, and the page says so."""
    grid = {"method": ["fedavg", "spherefed"], "local.batch_size": [16, 32], "seed": [0, 1]}
    latency, *_ = claims(tmp_path / "grid", sweep=grid)["published"]
    pairs = {(one["group"], one["against_group"]) for one in latency["ours"]}
    assert pairs == {(2, 0), (3, 1)}
    apart = {"runs": [{"name": "a"}, {"name": "b", "method": "spherefed", "local.batch_size": 16}]}
    latency, *_ = claims(tmp_path / "apart", sweep=apart)["published"]
    why = "no runs of spherefed and fedavg differ in nothing but their methods"
    assert (latency["ours"], latency["why"]) == ([], why)


def test_seeds_may_have_other_models_on_a_device(tmp_path):
    """Savings are means over the seeds that have a client with the model and the device."""
    changes = {
        "task": {"dataset": "digits", "clients": 3},
        "model": [{"name": "mlp", "hidden": [32]}, {"name": "mlp", "hidden": [16, 32]}],
        "published": [{**CLAIMED["published"][0], "method": "fedproto", "against": "fedclassavg"}],
        "sweep": {"method": ["fedclassavg", "fedproto"], "seed": [1, 6, 7]},
    }
    result = edgefl.run({**CLAIMED, "method": "fedproto", **changes}, engine="null", out=tmp_path / "runs")
    each = [{(one["model"], one["device"]) for one in run.table("clients")} for run in result.runs]
    assert set.intersection(*each) != set.union(*each)
    latency, _ = paged(result.folder)["published"]
    assert {(one["model"], one["device"]) for one in latency["ours"]} == set.union(*each)


def test_an_exchange_that_nobody_has(tmp_path):
    """The claim stays, with the reason why there is nothing beside it."""
    claim = {**CLAIMED["published"][0], "exchange": "distil"}
    (latency, _) = claims(tmp_path, published=[claim], sweep={"method": ["fedavg", "spherefed"]})["published"]
    assert (latency["ours"], latency["why"]) == ([], "no run has an exchange 'distil'")


def test_claims_change_no_identity(tmp_path):
    """A run with claims has the run_id and the events of one without."""
    with_, without = (
        edgefl.run({**CLAIMED, **more}, engine="null", out=tmp_path / name).runs[0].summary()
        for name, more in (("with", {}), ("without", {"published": []}))
    )
    assert (with_.run_id, with_.event_hash) == (without.run_id, without.event_hash)
    assert paged(tmp_path / "without")["published"] == []
