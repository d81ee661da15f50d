"""Who is ahead: a difference that may be chance is not called a win."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgefl.core.corners import Interval
from edgefl.core.ledger import EnergyTotal
from edgefl.report.averages import Compared
from edgefl.report.page.sections.verdict import verdict
from edgefl.report.reached import Reached, Target, Waste
from edgefl.report.summary import Accuracy
from edgefl.runs.dry import dry_run


@pytest.fixture(scope="module")
def dry():
    """A run's summary, without intervals."""
    (found,) = dry_run("quickstart", ["sweep=null", "server.rounds=1"])
    return replace(
        found.summary,
        virtual_s_between=None,
        joules_between=None,
        energy=EnergyTotal(10.0, 20, 20),
        status="done",
    )


def group(dry, *accuracies, name="run", **more):
    """Runs that differ in their seeds, with these accuracies."""
    runs = [
        replace(dry, name=name, accuracy={"global": Accuracy(one, None, 0, None, None, None)}, **more)
        for one in accuracies
    ]
    return Compared(name, tuple(runs))


def row(key, *groups):
    """One row of the verdict."""
    (found,) = [one for one in verdict(groups) if one.key == key]
    return found


def accuracy(*groups):
    """The row of the global model's accuracy: (winner, close, tied)."""
    found = row("accuracy.global.value", *groups)
    return found.winner, found.close, list(found.tied)


def test_the_highest_accuracy_wins(dry):
    """Of runs of one seed, the mean decides."""
    assert accuracy(group(dry, 0.7), group(dry, 0.9), group(dry, 0.8)) == (1, False, [])


def test_the_least_time_wins(dry):
    """Of costs, less is better."""
    found = row("virtual_s", group(dry, 0.5, virtual_s=9.0), group(dry, 0.5, virtual_s=8.0))
    assert (found.better, found.winner, found.close) == ("lower", 1, False)
    assert found.means == [9.0, 8.0]


@pytest.mark.parametrize(("mean", "close"), [(0.85, True), (0.899, True), (0.84, False)])
def test_a_difference_within_the_deviations_is_close(dry, mean, close):
    """0.90 ± 0.028 and others ± 0.028: those that overlap are too close to call."""
    best, second = group(dry, 0.88, 0.92), group(dry, mean - 0.02, mean + 0.02)
    assert accuracy(second, best) == (1, close, [])


def test_the_third_may_be_close_too(dry):
    """Not only the second counts: a third with a wide deviation may be as good."""
    assert accuracy(group(dry, 0.9), group(dry, 0.8), group(dry, 0.55, 0.95)) == (0, True, [])


def test_a_difference_within_the_intervals_is_close(dry):
    """Times whose bounds overlap are too close to call; those whose bounds do not are not."""

    def of(value, low, high):
        return group(dry, 0.5, virtual_s=value, virtual_s_between=Interval(low, high))

    assert row("virtual_s", of(5.0, 4.0, 6.5), of(7.0, 6.0, 9.0)).close
    assert not row("virtual_s", of(5.0, 4.0, 5.5), of(7.0, 6.0, 9.0)).close
    unbounded = row("virtual_s", of(5.0, 4.0, None), of(7.0, 6.0, 9.0))
    assert (unbounded.winner, unbounded.close) == (0, True)


def test_equal_figures_have_no_winner(dry):
    """Those with the best figure are named, those with another are not."""
    assert accuracy(group(dry, 0.9), group(dry, 0.8), group(dry, 0.9)) == (None, False, [0, 2])


def test_one_group_is_ahead_of_nobody(dry):
    """A run alone has figures and no winner."""
    assert accuracy(group(dry, 0.9)) == (None, False, [])


def test_a_run_that_is_not_done_is_not_judged(dry):
    """It may have stopped early, which is cheap."""
    failed = group(dry, 0.95, status="failed", virtual_s=0.1)
    assert accuracy(failed, group(dry, 0.7), group(dry, 0.6)) == (1, False, [])
    assert accuracy(failed, group(dry, 0.7)) == (None, False, [])


@pytest.mark.parametrize("energy", [EnergyTotal(None, 0, 20), EnergyTotal(1.0, 3, 20)])
def test_an_unknown_energy_may_be_the_least(dry, energy):
    """Where a group's energy is unknown, or known of some clients, no other is called the best."""
    found = row("joules", group(dry, 0.5), group(dry, 0.5, energy=energy))
    assert (found.winner, found.close) == (None, False)


def test_who_reached_the_target_beats_who_did_not(dry):
    """However long it took; of those that did, the earliest wins; nobody does where none reached it."""

    def of(t_s, *, runs=1):
        energy, waste = EnergyTotal(1.0, 1, 1), Waste(0, 0.0, 0.0)
        reached = None if t_s is None else Reached(t_s, 0, 1, 1, energy, 0.9, waste, None)
        return group(dry, *[0.9] * runs, target=Target(0.9, reached, None))

    assert row("target.global.t_s", of(None), of(500.0)).winner == 1
    assert row("target.global.t_s", of(400.0), of(500.0), of(None)).winner == 0
    assert row("target.global.t_s", of(None), of(None)).winner is None
    some = Compared("some", (*of(1.0).runs, *of(None).runs))
    found = row("target.global.t_s", some, of(500.0))
    assert (found.winner, found.close) == (0, True)


def test_a_model_that_one_lacks_is_judged_among_the_others(dry):
    """A method without a personal model does not keep the others from being compared."""
    lacking = replace(dry, accuracy={})
    found = accuracy(Compared("none", (lacking,)), group(dry, 0.9), group(dry, 0.8))
    assert found == (1, False, [])
