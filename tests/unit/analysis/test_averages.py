"""Which runs are taken together and compared, who is ahead and when nobody is, and Pareto fronts."""

from dataclasses import replace

import pytest
from compared import run_of, seeds, to_target, took
from hypothesis import given
from hypothesis import strategies as st

from edgefl.analysis.groups import SeedGroup, baselines, front, judged, pairs, seeds_together
from edgefl.analysis.metrics import metrics
from edgefl.analysis.sensitivity import Dependence, ordered
from edgefl.core.corners import Interval
from edgefl.core.event import EnergyTotal
from edgefl.planning.sensitivity import Sensitivity, Turn, Verdict


def test_only_what_is_alike_is_taken_together():
    one, two = seeds("fedavg", [0.5, 0.6])
    for other in (
        replace(two, settings={**two.settings, "method": "x"}),
        replace(two, fleet_id="b"),
        replace(two, status="running"),
        replace(two, settings=None),
        replace(two, accuracy={}),
        replace(two, seed=one.seed),
    ):
        assert [len(each.runs) for each in seeds_together([one, other])] == [1, 1]
    assert [len(each.runs) for each in seeds_together([one, two, one, two])] == [2, 2]


def test_names_are_what_seeds_have_in_common_and_tell_groups_apart():
    first, other = seeds("fedavg", [0.5, 0.6]), run_of(name="fedavg", seed=4, run_dir="x/lab/03-fedavg")
    assert [one.name for one in seeds_together(first)] == ["fedavg"]
    assert [one.name for one in seeds_together([*first, other])] == [
        "fedavg\n1 and 1 more",
        "fedavg\nlab, seed 4",
    ]
    assert [one.line for one in seeds_together([other, other])] == ["fedavg, lab, seed 4"] * 2
    assert seeds_together([replace(one, name=f"seed {one.seed}") for one in first])[0].name == first[0].method


def test_each_is_compared_with_the_first_of_its_task_and_fleet():
    """Of several problems, within each; of several fleets and one method, the fleets."""

    def told(*groups):
        compared = seeds_together([run for runs in groups for run in runs])
        return [(own.name, other.name) for own, other in baselines(compared)]

    names = [seeds(name, [0.5, 0.6]) for name in ("a", "b", "c")]
    assert told(*names) == [("b", "a"), ("c", "a")]
    harder = [seeds(name, [0.3, 0.4], settings={"task.dataset": "cifar10"}) for name in ("d", "e")]
    assert told(names[0], harder[0], names[1], harder[1]) == [("b", "a"), ("e", "d")]
    assert told(names[0], seeds("f", [0.5, 0.6], fleet_id="b")) == [("f", "a")]
    # One seed alone tells nothing about others.
    assert told(names[0][:1], names[1], names[2]) == [("c", "b")]
    assert told(names[0][:1], names[1][:1]) == []


def pair(first, second, key="accuracy.global.value"):
    (found,) = pairs(seeds_together([*first, *second]))
    return found, found.figures.get(key)


def test_seeds_that_differ_are_unpaired():
    """With two seeds in common these alone count, and so do those that both have finished."""
    first, second = seeds("a", [0.5, 0.6, 0.7]), seeds("b", [0.61, 0.71, 0.3], first=2)
    assert not pair(first, seeds("b", [0.6, 0.7, 0.8], first=4))[1].paired
    found, apart = pair(first, second)
    assert (found.seeds, apart.paired, apart.pairs) == ([2, 3], True, 2)
    second = [*seeds("b", [0.6, 0.7]), replace(seeds("b", [0.2], first=3)[0], status="failed")]
    found, apart = pair(first, second)
    assert (found.seeds, apart.pairs, apart.mean) == ([1, 2], 2, pytest.approx(0.1))


@pytest.mark.parametrize(
    "unknown", [{"energy": EnergyTotal(10.0, 19, 20)}, {"joules_between": Interval(10.0, None)}]
)
def test_energies_of_some_clients_and_lower_bounds_are_not_subtracted(unknown):
    first, second = seeds("a", [0.5] * 3), seeds("b", [0.5] * 3)
    apart = pair(first, [replace(second[0], **unknown), *second[1:]], "joules")[1]
    assert (apart.pairs, apart.of) == (2, 3)
    found, apart = pair(first, [replace(run, **unknown) for run in second], "joules")
    assert (apart, "virtual_s" in found.figures) == (None, True)


def group(*accuracies, **more):
    each = {
        key: value if isinstance(value, list) else [value] * len(accuracies) for key, value in more.items()
    }
    runs = [
        run_of(accuracy, seed=seed, **{key: values[seed] for key, values in each.items()})
        for seed, accuracy in enumerate(accuracies)
    ]
    return SeedGroup("run", tuple(runs))


def reaching(*times):
    """Runs that reached their target after some seconds, or not at all."""
    runs = zip(group(*[0.9] * len(times)).runs, times, strict=True)
    return SeedGroup("run", tuple(to_target(run, None if t_s is None else took(t_s)) for run, t_s in runs))


def timed(*times, low=None, high=None, **more):
    """Runs that took some seconds, with their bounds; no bound above where the other one is all."""
    between = None if low is None else Interval(low, high)
    bounds = {"virtual_s_between": between, "joules_between": between}
    return group(*[0.5] * len(times), virtual_s=list(times), **bounds, **more)


ACCURACY, TIME, TO_TARGET = "accuracy.global.value", "virtual_s", "target.global.t_s"
SEEDS, NOISE = (0.6, 0.7, 0.8), (0.001, -0.001, 0.0)
GAINS = {
    gain: group(*(one + gain + some for one, some in zip(SEEDS, NOISE, strict=True)))
    for gain in (0.01, 0.001)
}


@pytest.mark.parametrize(
    ("key", "groups", "ahead"),
    [
        (ACCURACY, [group(0.7), group(0.9), group(0.8)], (1, None)),
        # Seeds differ by 0.2, methods by the gain ± 4.30 x 0.001 / root 3: their differences count.
        (ACCURACY, [group(*SEEDS), GAINS[0.01]], (1, None)),
        (ACCURACY, [group(*SEEDS), GAINS[0.001]], (1, 3)),
        # Not only the second counts: a third whose seeds differ widely may be as good.
        (ACCURACY, [group(0.9, 0.9, 0.9), group(0.8, 0.8, 0.8)], (0, None)),
        (ACCURACY, [group(0.9, 0.9, 0.9), group(0.8, 0.8, 0.8), group(0.55, 0.95, 0.95)], (0, 3)),
        # A run alone is judged by the spread of the others.
        (ACCURACY, [group(0.9), group(0.8, 0.85, 0.9)], (0, 1)),
        (ACCURACY, [group(0.9), group(0.8, 0.801, 0.799)], (0, None)),
        # Equal figures are tied.
        (ACCURACY, [group(0.9), group(0.8), group(0.9)], [0, 2]),
        # A run that is not done may have stopped early, which is cheap.
        (ACCURACY, [group(0.95, status="failed"), group(0.7), group(0.6)], (1, None)),
        # An energy that is unknown, or known of some clients, may be the least.
        ("joules", [group(0.5), group(0.5, energy=EnergyTotal(1.0, 3, 20))], None),
        # A lower bound is never the least, and must be apart as it is: the other takes that or more.
        (TIME, [timed(5.0, low=4.0), timed(7.0, low=6.0, high=9.0)], None),
        (TIME, [timed(8.0, low=8.0), timed(7.0, low=6.0, high=9.0)], (1, None)),
        (TIME, [timed(5.0, 5.0, 5.0), timed(5.3, 5.1, 4.9, low=5.0)], (0, 3)),
        (TIME, [timed(5.0, 5.0, 5.0), timed(7.2, 7.0, 6.8, low=7.0)], (0, None)),
        # Who reached the target is ahead of who did not, and who did in all seeds of who did in some.
        (TO_TARGET, [reaching(400.0), reaching(500.0), reaching(None)], (0, None)),
        (TO_TARGET, [reaching(5.0, 5.0, None), reaching(9.0, 9.0, 9.0)], (1, None)),
        (TO_TARGET, [reaching(5.0, None, None), reaching(9.0, None, None)], (0, 1)),
    ],
)
def test_who_is_ahead(key, groups, ahead):
    """(winner, of how many seeds another is not separable), a list of tied ones, or None for nobody."""
    runs = [run for one in groups for run in one.runs]
    (metric,) = [metric for metric in metrics(runs) if metric.key == key]
    found = judged(metric, groups)
    if isinstance(ahead, list):
        assert (found.winner, found.tied) == (None, ahead)
    else:
        assert (found.winner, found.close_seeds, [*found.tied]) == (*(ahead or (None, None)), [])
    assert found.ranges == (ahead is not None)


APART = [timed(5.0, low=4.0, high=5.5), timed(7.0, low=6.0, high=9.0)]
OVERLAPPING = [timed(5.0, low=4.0, high=6.5), timed(7.0, low=6.0, high=9.0)]
BETWEEN = timed(6.0, low=5.0, high=7.0)


def order(groups, found=None, key=TIME):
    groups = [replace(one, name=name) for one, name in zip(groups, ("a\nb", "c", "d"), strict=False)]
    (metric,) = [one for one in metrics([run for one in groups for run in one.runs]) if one.key == key]
    one = ordered(judged(metric, groups), groups, found)
    return one.order, list(one.depends_on)


@pytest.mark.parametrize(
    ("groups", "key", "expected"),
    [
        # Runs share their devices' numbers: only intervals that lie apart are a proof, and of all.
        (APART, TIME, "holds"),
        (OVERLAPPING, TIME, "open"),
        ([*APART, BETWEEN], TIME, "open"),
        # What rests on no interval has no order.
        (OVERLAPPING, "bytes", ""),
        # Times of runs that are not blind to them have no bounds, though their devices' numbers have.
        ([group(0.5, virtual_s=one, joules_between=Interval(1, 2)) for one in (1.0, 2.0)], TIME, "open"),
        # What seeds leave open is not said to hold over intervals.
        ([timed(4.0, 8.0), timed(7.0, low=6.9, high=7.1)], TIME, ""),
    ],
)
def test_whether_the_order_holds_over_intervals(groups, key, expected):
    if key == "bytes":
        groups = [
            SeedGroup("", (replace(one.first, bytes=size),)) for one, size in zip(groups, (1, 2), strict=True)
        ]
    assert order(groups, key=key) == (expected, [])


@pytest.mark.parametrize(
    ("turns", "together", "expected"),
    [((), False, "holds"), ((), True, "depends"), (("pi launch",), True, "depends")],
)
def test_the_order_is_that_of_the_sensitivity(turns, together, expected):
    """Where it was studied, it says whether the winner is ahead on all numbers, or which turn that."""
    turned = [Turn(one, "1 us", above=True) for one in turns]
    verdict = Verdict("time", "a b", "c", 9, 1.0, None, together, turned)
    study = Dependence(Sensitivity(1.0, 9, 0, {"time": {}}, {}, [], [verdict]))
    assert order(OVERLAPPING, study) == (expected, list(turns))
    assert order([*OVERLAPPING, BETWEEN], study)[0] == ("depends" if expected == "depends" else "open")


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
