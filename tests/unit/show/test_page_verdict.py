"""Who is ahead: a difference that may be chance is not called a win."""

from __future__ import annotations

from dataclasses import replace

import pytest
from edgefl.show.averages import Compared
from edgefl.show.dependence import Dependence
from edgefl.show.verdict import verdict

from edgefl.analysis.reached import Reached, Target, Waste
from edgefl.analysis.summary import Accuracy
from edgefl.core.corners import Interval
from edgefl.core.ledger import EnergyTotal
from edgefl.planning.sensitivity import Sensitivity, Turn
from edgefl.planning.sensitivity import Verdict as Turned
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
        replace(
            dry, name=name, seed=seed, accuracy={"global": Accuracy(one, None, 0, None, None, None)}, **more
        )
        for seed, one in enumerate(accuracies)
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


@pytest.mark.parametrize(("gain", "close"), [(0.01, False), (0.001, True)])
def test_a_gain_in_every_seed_is_not_close(dry, gain, close):
    """Seeds differ by 0.2, methods by the gain ± 4.30 x 0.001 (three seeds): only their differences count."""
    seeds, noise = (0.6, 0.7, 0.8), (0.001, -0.001, 0.0)
    best = group(dry, *(one + gain + some for one, some in zip(seeds, noise, strict=True)))
    assert accuracy(group(dry, *seeds), best) == (1, close, [])
    assert row("accuracy.global.value", group(dry, *seeds), best).close_seeds == (3 if close else None)


def test_the_third_may_be_close_too(dry):
    """Not only the second counts: a third whose seeds differ widely may be as good."""
    second = group(dry, 0.8, 0.8, 0.8)
    assert accuracy(group(dry, 0.9, 0.9, 0.9), second) == (0, False, [])
    assert accuracy(group(dry, 0.9, 0.9, 0.9), second, group(dry, 0.55, 0.95, 0.95)) == (0, True, [])


def test_a_run_alone_is_judged_by_the_spread_of_the_others(dry):
    """Its seed may have been a lucky one, as theirs differ; without any spread the figures decide."""
    assert accuracy(group(dry, 0.9), group(dry, 0.8, 0.85, 0.9)) == (0, True, [])
    assert accuracy(group(dry, 0.9), group(dry, 0.8, 0.801, 0.799)) == (0, False, [])


@pytest.mark.parametrize(("slower", "close"), [(0.1, True), (2.0, False)])
def test_a_lower_bound_must_be_apart_as_it_is(dry, slower, close):
    """The other takes that or more: separable from the bound is separable from what is above it."""
    known = group(dry, 0.5, 0.5, 0.5, virtual_s=5.0)
    times = [5.0 + slower + some for some in (0.2, 0.0, -0.2)]
    bounded = group(dry, 0.5, 0.5, 0.5)
    runs = [
        replace(run, virtual_s=t_s, virtual_s_between=Interval(t_s, None))
        for run, t_s in zip(bounded.runs, times, strict=True)
    ]
    found = row("virtual_s", known, replace(bounded, runs=tuple(runs)))
    assert (found.winner, found.close) == (0, close)


def test_who_reached_a_target_in_all_seeds_is_ahead(dry):
    """Of who did in some, those seeds may be the quick ones."""
    some, all_ = group(dry, *[0.5] * 3), group(dry, *[0.5] * 3)
    took = [
        Reached(t_s, 0, 1, 1, EnergyTotal(1.0, 1, 1), 0.5, Waste(0, 0.0, 0.0), last_below=None)
        for t_s in (5, 9)
    ]

    def to_target(group, *found):
        runs = zip(group.runs, found, strict=True)
        return replace(group, runs=tuple(replace(run, target=Target(0.5, one, None)) for run, one in runs))

    quick, slow = took
    groups = to_target(some, quick, quick, None), to_target(all_, slow, slow, slow)
    found = row("target.global.t_s", *groups)
    assert (found.winner, found.close) == (1, False)


def timed(dry, value, low, high, name="run"):
    """A run with a time and its bounds."""
    bounds = Interval(low, high)
    return group(dry, 0.5, name=name, virtual_s=value, virtual_s_between=bounds, joules_between=bounds)


def order(*groups, found=None):
    """The row of the virtual time: (winner, close, order, what it depends on)."""
    (row,) = [one for one in verdict(groups, found) if one.key == "virtual_s"]
    return row.winner, row.close, row.order, list(row.depends_on)


def test_intervals_make_no_order_close(dry):
    """Runs share their devices' numbers: the values as given decide, and only apart are intervals a proof."""
    assert order(timed(dry, 5.0, 4.0, 6.5), timed(dry, 7.0, 6.0, 9.0)) == (0, False, "open", [])
    assert order(timed(dry, 5.0, 4.0, 5.5), timed(dry, 7.0, 6.0, 9.0)) == (0, False, "holds", [])
    third = timed(dry, 6.0, 5.0, 7.0)
    assert order(timed(dry, 5.0, 4.0, 5.5), timed(dry, 7.0, 6.0, 9.0), third)[2] == "open"


def test_what_rests_on_no_interval_has_no_order(dry):
    """Neither accuracies nor bytes, nor times of devices whose numbers are all known."""
    pair = timed(dry, 5.0, 4.0, 6.5), timed(dry, 7.0, 6.0, 9.0)
    assert {one.order for one in verdict(pair) if one.unit not in {"s", "J"}} == {""}
    assert order(group(dry, 0.5, virtual_s=1.0), group(dry, 0.5, virtual_s=2.0))[2] == ""
    # Times of a run that is not blind to them have no bounds, though its devices' numbers have.
    unbounded = [group(dry, 0.5, virtual_s=one, joules_between=Interval(1, 2)) for one in (1.0, 2.0)]
    assert order(*unbounded)[2] == "open"


def test_a_lower_bound_is_not_the_least(dry):
    """A time that may be any longer is behind a known one that is less, and ahead of none."""
    known = timed(dry, 7.0, 6.0, 9.0)
    assert order(timed(dry, 5.0, 4.0, None), known)[0] is None
    assert order(timed(dry, 8.0, 8.0, None), known)[:2] == (1, False)


@pytest.mark.parametrize(
    ("turns", "together", "expected"),
    [
        ((), False, ("holds", [])),
        ((), True, ("depends", [])),
        (("pi launch",), True, ("depends", ["pi launch"])),
    ],
)
def test_the_order_is_that_of_the_sensitivity(dry, turns, together, expected):
    """Where it was studied, it says whether the winner is ahead on all numbers, or which turn that."""
    found = Turned(
        "time", "a b", "c", 9, 1.0, None, together, [Turn(one, "1 us", above=True) for one in turns]
    )
    study = Dependence(Sensitivity(1.0, 9, 0, {"time": {}}, {}, [], [found]))
    groups = timed(dry, 5.0, 4.0, 6.5, name="a\nb"), timed(dry, 7.0, 6.0, 9.0, name="c")
    assert order(*groups, found=study) == (0, False, *expected)
    assert order(*groups, timed(dry, 6.0, 5.0, 7.0), found=study)[2] == (
        "depends" if expected[0] == "depends" else "open"
    )


def test_seeds_that_overlap_leave_the_order_aside(dry):
    """What is too close to call by chance is not said to hold over intervals."""
    spread = [
        replace(run, virtual_s=at) for run, at in zip(group(dry, 0.5, 0.5).runs, (4.0, 8.0), strict=True)
    ]
    found = order(Compared("a", tuple(spread)), timed(dry, 7.0, 6.9, 7.1))
    assert found == (0, True, "", [])


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
    assert (found.winner, found.close) == (1, False)


def test_the_rows_are_those_that_are_asked_for(dry):
    """Accuracies, what the target took one model, useful and wasted, then all; the other stands aside."""
    waste = Waste(2, 3.0, 4.0)
    reached = Reached(1.0, 0, 10, 1, EnergyTotal(9.0, 1, 1), 0.9, waste, None)
    scores = {name: Accuracy(0.9, None, 0, None, None, None) for name in ("global", "personal")}
    run = replace(dry, accuracy=scores, target=Target(0.5, reached, reached))
    found = verdict([Compared("a", (run,)), Compared("b", (run,))])
    assert [(one.label, one.aside) for one in found] == [
        ("accuracy, global", False),
        ("accuracy, personal", False),
        *((f"{what} to 50%", False) for what in _TO_TARGET),
        *((what, False) for what in ("virtual time", "bytes of all clients", "energy of all clients")),
        *((f"{what} to 50%", True) for what in _TO_TARGET),
    ]
    useful = {one.label: one.means[0] for one in found if one.label.startswith("useful")}
    assert useful == {"useful bytes to 50%": 8.0, "useful energy to 50%": 6.0}
    lacking = replace(run, accuracy={"personal": scores["personal"]}, target=Target(0.5, None, reached))
    found = verdict([Compared("a", (run,)), Compared("b", (lacking,))])
    assert {one.key.split(".")[1] for one in found if one.key.startswith("target.") and not one.aside} == {
        "personal"
    }


_TO_TARGET = ("time", "bytes", "energy", "useful bytes", "useful energy", "wasted bytes", "wasted energy")


def test_a_target_that_none_reached_has_one_row(dry):
    """That none did is said once."""
    found = verdict([group(dry, 0.9, target=Target(0.95, None, None)), group(dry, 0.8, target=None)])
    assert [one.label for one in found if one.key.startswith("target.")] == ["time to 95%"]


def test_a_model_that_one_lacks_is_judged_among_the_others(dry):
    """A method without a personal model does not keep the others from being compared."""
    lacking = replace(dry, accuracy={})
    found = accuracy(Compared("none", (lacking,)), group(dry, 0.9), group(dry, 0.8))
    assert found == (1, False, [])
