"""Groups of seeds against each other, in words, in the document and beside a table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from compared import every, lines_of, tables_of

from edgefl.analysis.estimates import Difference
from edgefl.core.corners import Interval
from edgefl.core.documents import document
from edgefl.core.ledger import EnergyTotal
from edgefl.runs.dry import dry_run
from edgefl.show.averages import seeds_together
from edgefl.show.comparison import Comparison
from edgefl.show.pairs import _SHOWS, baselines, pair_texts, pairs, said
from edgefl.show.summary import Accuracy


@pytest.fixture(scope="module")
def dry():
    """A run's summary, without bounds."""
    (found,) = dry_run("quickstart", ["sweep=null", "server.rounds=1"])
    energy = EnergyTotal(10.0, 20, 20)
    return replace(
        found.summary, virtual_s_between=None, joules_between=None, energy=energy, status="done", fleet_id="a"
    )


def seeds(dry, method, accuracies, first=1, **more):
    """Runs of a method on the seeds from the first one on."""
    settings = {"method": method, "task.dataset": "digits", **more.pop("settings", {})}
    return [
        replace(
            dry,
            name=f"{method}, seed {seed}",
            seed=seed,
            accuracy={"global": Accuracy(value, None, 0, None, None, None)},
            settings={**settings, "seed": seed},
            run_dir=f"{method}/{seed}",
            **more,
        )
        for seed, value in enumerate(accuracies, start=first)
    ]


def texts(*groups):
    """The differences in accuracy, by head."""
    found = pair_texts(seeds_together([run for runs in groups for run in runs]))
    rows = dict(zip(found.labels, found.texts, strict=True))
    return dict(zip(found.heads, rows.get("accuracy, global", []), strict=True)), found.notes


@pytest.mark.parametrize(
    ("found", "unit", "text"),
    [
        (Difference(-1.5, 0.25, 5, 5, paired=True), "s", "-1.5 s ±250 ms"),
        (Difference(-1.5, 1.25, 5, 5, paired=True), "s", "-1.5 ±1.25 s"),
        (Difference(0.012, 0.03, 5, 5, paired=True), "share", "+1.2 ±3.0 points (not separable at 5 seeds)"),
        (
            Difference(0.012, 0.03, 3, 5, paired=True),
            "share",
            "+1.2 ±3.0 points (not separable at 3 of 5 seeds)",
        ),
        (Difference(12.0, 3.0, 3, 5, paired=True), "J", "+12 ±3 J (3 of 5 seeds)"),
        (Difference(12.0, 3.0, 3, 3, paired=False), "B", "+12 ±3 B (unpaired)"),
        (Difference(12.0, 13.0, 3, 3, paired=False), "", "+12 ±13 (not separable at 3 seeds, unpaired)"),
        (Difference(12.0, None, 1, 5, paired=True), "FLOP", "+12 FLOP (one seed)"),
        (Difference(12.0, 0.0, 2, 2, paired=True), "B", "+12 B"),
        (Difference(0.0, 0.0, 2, 2, paired=True), "B", "equal"),
        (Difference(0.0, 1.0, 2, 2, paired=True), "B", "0 ±1 B (not separable at 2 seeds)"),
        (None, "B", "-"),
    ],
)
def test_a_difference_in_words(found, unit, text):
    """A sign, half of the interval, and what else must be known of it."""
    assert said(found, _SHOWS.get(unit, "{:g}".format)) == text


def test_seeds_are_subtracted_one_by_one(dry):
    """Methods that differ by 1, 2 and 3 points in seeds that differ by 10: 2 points ± 4.30 x 1 / root 3."""
    first = seeds(dry, "fedavg", [0.5, 0.6, 0.7])
    second = seeds(dry, "other", [0.51, 0.62, 0.73])
    (apart,), notes = texts(first, reversed(second))[0].values(), texts(first, second)[1]
    assert apart == "+2.0 ±2.5 points (not separable at 3 seeds)"
    assert texts(first, second)[0] == {"other\nagainst fedavg": apart}
    assert texts(second, first)[0] == {"fedavg\nagainst other": apart.replace("+", "-")}
    assert any(note.startswith("against: ") and "not corrected" in note for note in notes)
    assert "not separable: the interval contains 0" in notes


def test_each_is_compared_with_the_first_of_its_task_and_fleet(dry):
    """Of several problems, within each; of several fleets and one method, the fleets."""

    def told(*groups):
        compared = seeds_together([run for runs in groups for run in runs])
        return [(own.name, other.name) for own, other in baselines(compared)]

    names = [seeds(dry, name, [0.5, 0.6]) for name in ("a", "b", "c")]
    assert told(*names) == [("b", "a"), ("c", "a")]
    cifar = {"task.dataset": "cifar10"}
    harder = [seeds(dry, name, [0.3, 0.4], settings=cifar) for name in ("d", "e")]
    assert told(names[0], harder[0], names[1], harder[1]) == [("b", "a"), ("e", "d")]
    assert told(names[0], seeds(dry, "f", [0.5, 0.6], fleet_id="b")) == [("f", "a")]
    # One seed alone tells nothing about others.
    assert told(names[0][:1], names[1], names[2]) == [("c", "b")]
    assert told(names[0][:1], names[1][:1]) == []


def test_seeds_that_differ_are_unpaired(dry):
    """Which the text says, and why; with two seeds in common these alone count."""
    first = seeds(dry, "a", [0.5, 0.6, 0.7])
    (apart,), notes = texts(first, seeds(dry, "b", [0.6, 0.7, 0.8], first=4))[0].values(), None
    assert apart.endswith("(not separable at 3 seeds, unpaired)")
    notes = texts(first, seeds(dry, "b", [0.6, 0.7, 0.8], first=4))[1]
    assert any(note.startswith("unpaired: ") for note in notes)
    (apart,) = texts(first, seeds(dry, "b", [0.61, 0.71, 0.3], first=2))[0].values()
    assert apart == "+1.0 points"
    (found,) = pairs(seeds_together([*first, *seeds(dry, "b", [0.61, 0.71, 0.3], first=2)]))
    assert found.seeds == [2, 3]


def test_runs_that_failed_have_no_part_in_it(dry):
    """The seeds that both methods finished are compared, and how many these are is said."""
    first, second = seeds(dry, "a", [0.5, 0.6, 0.7]), seeds(dry, "b", [0.6, 0.7, 0.2])
    second[2] = replace(second[2], status="failed")
    compared = seeds_together([*first, *second])
    assert [len(one.runs) for one in compared] == [3, 2, 1]
    (found,) = pairs(compared)
    assert (found.seeds, found.figures["accuracy.global.value"].pairs) == ([1, 2], 2)
    assert found.figures["accuracy.global.value"].mean == pytest.approx(0.1)


@pytest.mark.parametrize(
    "unknown",
    [
        {"energy": EnergyTotal(10.0, 19, 20)},
        {"energy": EnergyTotal(None, 0, 20)},
        {"joules_between": Interval(10.0, None)},
    ],
)
def test_energies_of_some_clients_and_lower_bounds_are_not_subtracted(dry, unknown):
    """Of how many seeds both are known stands beside the difference; where of none, there is none."""
    first, second = seeds(dry, "a", [0.5, 0.6, 0.7]), seeds(dry, "b", [0.5, 0.6, 0.7])
    some = [replace(second[0], **unknown), *second[1:]]
    (found,) = pairs(seeds_together([*first, *some]))
    assert (found.figures["joules"].pairs, found.figures["joules"].of) == (2, 3)
    (found,) = pairs(seeds_together([*first, *(replace(run, **unknown) for run in second)]))
    assert "joules" not in found.figures
    assert "virtual_s" in found.figures


def test_the_document_has_the_pairs(dry):
    """With ends of intervals in base units; the table says the same."""
    runs = [*seeds(dry, "a", [0.5, 0.6, 0.7]), *seeds(dry, "b", [0.51, 0.62, 0.73])]
    (found,) = document(Comparison(runs))["pairs"]
    assert (found["name"], found["against"], found["seeds"]) == ("b", "a", [1, 2, 3])
    assert (found["runs"], found["against_runs"]) == (["b/1", "b/2", "b/3"], ["a/1", "a/2", "a/3"])
    apart = found["figures"]["accuracy.global.value"]
    half = 4.302653 * 0.01 / 3**0.5
    assert apart["interval_95"] == pytest.approx({"low": 0.02 - half, "high": 0.02 + half}, abs=1e-6)
    assert {key: apart[key] for key in ("pairs", "of", "paired", "separable")} == {
        "pairs": 3,
        "of": 3,
        "paired": True,
        "separable": False,
    }
    table = tables_of(every(runs))[-1]
    assert table.heads == ["", "b\nagainst a"]
    assert ["accuracy, global", "+2.0 ±2.5 points\n(not separable at 3 seeds)"] in table.rows
    assert document(Comparison(runs[:3]))["pairs"] == []


def test_two_seeds_say_how_wide_their_interval_is(dry):
    """12.7 / root 2 deviations; of three seeds and more it speaks for itself."""
    words = "; of 2 seeds it is 9 times the standard deviation"
    for number, told in ((2, True), (3, False)):
        notes = lines_of(every(seeds(dry, "a", [0.5] * number)))
        (line,) = [note for note in notes if note.startswith("± 95% interval of the mean over seeds")]
        assert line.endswith(words) == told
