"""Settings, figures and Pareto fronts of the groups of a page."""

from __future__ import annotations

from dataclasses import replace

import pytest
from compared import at, rich
from edgefl.show.averages import seeds_together
from edgefl.show.differing import differing
from edgefl.show.page.sections.sweep import front, sweep
from hypothesis import given
from hypothesis import strategies as st
from paged import compared, paged

from edgefl.analysis.summary import summaries
from edgefl.core.ledger import EnergyTotal

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
