"""Runs side by side: the short table and who is ahead, every figure, pairs, and what is said below."""

from __future__ import annotations

from dataclasses import replace

import pytest
from commands import shown
from compared import (
    cells,
    dry,
    every,
    lines_of,
    run_of,
    seeds,
    tables_of,
    to_target,
    took,
)

from edgefl.analysis.carbon import Amount
from edgefl.analysis.groups import seeds_together
from edgefl.analysis.sums import Turnout
from edgefl.core.corners import Interval
from edgefl.core.documents import document
from edgefl.core.errors import UserError
from edgefl.core.ledger import EnergyTotal
from edgefl.show.compare import Comparison, chosen, comparison, few
from edgefl.show.formats import latex

CHURN = "fleet={like: home-lab, availability: {name: markov, on: 1 min, off: 30 min}}"
CARBON = "fleet={like: home-lab, carbon: {regions: DE, server: {power: 20 W}, embodied: busy}}"


def quick(name, accuracy, seconds, **more):
    """A run that took some seconds, and as many bytes, and its target half of them."""
    run = run_of(accuracy, name=name, virtual_s=seconds, bytes=int(1000 * seconds), **more)
    return to_target(run, took(seconds / 2), 0.8)


def test_who_is_ahead_stands_in_one_line():
    """In accuracy and costs; what seeds leave open is told apart."""
    runs = [quick("slow", 0.95, 10.0), quick("fast", 0.9, 5.0)]
    assert lines_of(comparison(runs))[0] == (
        "ahead, on one seed each: slow in global accuracy; "
        "fast in time to 80%, bytes to 80%, energy to 80%, time, bytes"
    )
    found = lines_of(comparison([*seeds("a", [0.80, 0.95, 0.85]), *seeds("b", [0.81, 0.83, 0.90])]))
    assert found[0] == "not separable over seeds: global accuracy"
    assert not any(line.startswith("ahead") for line in lines_of(comparison([run_of(0.5), run_of(0.5)])))


def test_more_than_three_runs_have_a_row_each():
    """One table of at most nine columns in 100 characters, or fewer in less; the best of each is marked."""
    runs = [quick(f"run {place}, of a name", 0.9 + place / 100, 1.0 + place) for place in range(5)]
    for width, columns in ((100, (7, 9)), (60, (3, 5))):
        lines = shown(comparison(runs), width).splitlines()
        rows = [line.split("│") for line in lines if "│" in line]
        assert len(rows) == 5
        assert columns[0] <= len(rows[0]) <= columns[1]
        assert max(map(len, lines)) <= width
        accuracies, times = ([row[place].strip().endswith("*") for row in rows] for place in (1, 2))
        assert (accuracies, times) == ([False] * 4 + [True], [True] + [False] * 4)
    assert {"* best of its column", "every figure with --all"} <= {*lines_of(comparison(runs))}
    close = [*seeds("a", [0.8, 0.9]), *seeds("b", [0.81, 0.88]), run_of(0.1, name="c"), run_of(0.2, name="d")]
    (table,) = tables_of(comparison(close))
    assert [row[1] for row in table.rows] == ["2", "2", "1", "1"]
    assert [str(row[2])[-1] for row in table.rows] == ["~", " ", " ", " "]
    assert "~ best, but not separable from all others over seeds" in lines_of(comparison(close))


def test_marks_and_notes_are_of_what_is_shown():
    """An unknown figure has no mark, a mark that stands nowhere no note, what is known of some no column."""
    runs = [run_of(0.9, name=f"run {place}", energy=EnergyTotal(1.0, 5, 20)) for place in range(4)]
    (table,) = tables_of(comparison(runs))
    assert "known part" not in table.heads
    assert not any(line.startswith(("*", "~")) for line in lines_of(comparison(runs)))
    best = [*runs, run_of(0.95, name="best"), run_of(name="none")]
    assert [row[1] for row in tables_of(comparison(best))[0].rows][-2:] == ["95.0% *", "-"]
    assert r"& -- &" in latex(comparison(best))


def test_bounds_stand_in_one_line():
    """The widest of each kind, of all that is shown; ``--all`` has them cell by cell."""
    runs = [
        run_of(0.9, virtual_s_between=Interval(5.0, 20.0), joules_between=Interval(8.0, 15.0)),
        run_of(0.9, name="b", virtual_s_between=Interval(9.0, 10_000.0)),
    ]
    told = "bounds, where known: times 0.5x to 1,000x, energies 0.8x to 1.5x what is shown; each with --all"
    assert told in lines_of(comparison(runs))
    assert cells(comparison(runs))["virtual time"] == ["10 s", "10 s"]
    assert cells(every(runs))["virtual time"][0] == "10 s (5 to 20)"
    bounded = run_of(0.9, virtual_s_between=Interval(10.0, None))
    assert "bounds, where known: times at least 1x what is shown; each with --all" in lines_of(
        comparison([bounded])
    )


def test_a_run_without_launch_overheads_is_a_lower_bound():
    """Its time has a sign, which is explained."""
    run = run_of(0.9, virtual_s_between=Interval(10.0, None), joules_between=Interval(10.0, None))
    found = cells(every([run]))
    assert (found["virtual time"], found["energy of all clients"]) == ([">10 s"], [">10 J"])
    assert "> launch overhead unknown; time is a lower bound" in lines_of(every([run]))


def test_seeds_are_averaged():
    """The mean and its 95% interval, which say that they are over seeds, and of how many that have it."""
    own = [replace(run, virtual_s=10.0 + place) for place, run in enumerate(seeds("fedavg", [0.95] * 3))]
    own = [to_target(run, took(2.0) if run.seed > 1 else None) for run in own]
    other = to_target(seeds("fedavg", [0.95], settings={"local.epochs": 2})[0], None)
    view = every([*own, replace(other, name="other")])
    found = cells(view)
    assert tables_of(view)[0].heads == ["", "fedavg\n3 seeds", "other"]
    assert found["virtual time"] == ["11 ±2.48 s", "10 s"]
    assert found["accuracy, global"] == ["95.0%", "95.0%"]
    assert found["time to 90%"] == ["2 s (2 of 3)", "not reached"]
    assert found["seed"] == ["1, 2, 3", "1"]
    assert "± 95% interval of the mean over seeds (Student's t, n - 1)" in lines_of(view)
    told = lines_of(every(seeds("a", [0.5, 0.6])))
    assert any(line.endswith("; of 2 seeds it is 9 times the standard deviation") for line in told)


def test_an_average_has_the_bounds_of_all_its_runs():
    """Their means; none where one has none. What is known of some clients is no amount of all."""

    def average(*totals):
        runs = []
        for run, total in zip(seeds("a", [0.5, 0.6]), totals, strict=True):
            carbon = dry(CARBON, "server.rounds=1").costs["carbon"]
            bill = replace(carbon, whole={**carbon.whole, "total": total})
            runs.append(replace(run, costs={"carbon": bill}))
        return cells(every(runs))["CO2e"]

    known, other = Amount(10.0, 2, 2, Interval(5, 30)), Amount(20.0, 2, 2, Interval(15, 25))
    assert average(known, other) == ["15 ±63.5 g (10 to 27.5)"]
    assert average(known, replace(other, between=None)) == ["15 ±63.5 g"]
    assert average(replace(known, known=1), other) == ["20 g (10 to 27.5) (1 of 2)"]
    lower = Amount(10.0, 1, 2, Interval(5, None)), Amount(20.0, 1, 2, Interval(15, None))
    assert average(*lower) == ["at least 10 g"]


def test_what_stopped_a_run_is_told_unless_it_is_its_rounds():
    """A run beside one that was stopped early says that its rounds were over."""
    one = run_of(0.5, stopped="rounds")
    assert "stopped by" not in cells(every([one, one]))
    found = cells(every([replace(one, name="early", stopped="time"), one]))
    assert found["stopped by"] == ["time", "rounds"]


def test_targets_that_differ_have_a_row():
    """And the rows below are of each run's own."""
    runs = [to_target(run_of(0.9, name=name), took(2.0), at) for name, at in (("a", 0.9), ("b", 0.8))]
    found = cells(every(runs))
    assert (found["target"], found["time to its target"]) == (["90%", "80%"], ["2 s", "2 s"])
    assert "target" not in cells(every(runs[:1]))


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ("failed", "a failed: a loss of [/] nan"),
        ("killed", "a was killed: these are its figures so far"),
        ("interrupted", "a was interrupted: these are its figures so far"),
        ("running", "a is still running: these are its figures so far"),
        ("done", None),
    ],
)
def test_what_became_of_a_run_is_told(status, text):
    """The reason once: `run` tells it when a run fails; `compare` has nobody else to tell it."""
    run = run_of(0.5, name="a", status=status, reason="a loss of [/] nan")
    told = [line for line in lines_of(every([run])) if line.startswith("a ")]
    assert told == ([text] if text else [])
    if status == "failed":
        assert "a failed" in lines_of(comparison([run], reasons=False))


def test_settings_that_differ_are_rows_and_a_line():
    """What names say already is neither; of few runs the line has their values."""
    names = ("fedavg", "flexchill", "spherefed")
    runs = [
        run_of(0.5, name=name, settings={"seed": 7, "method.name": name, "local.optimizer.lr": lr})
        for name, lr in zip(names, (0.5, 0.5, 10.0), strict=True)
    ]
    found = cells(every(runs))
    assert found["local.optimizer.lr"] == ["0.5", "0.5", "10"]
    assert not {"method.name", "seed"} & found.keys()
    assert "they differ in local.optimizer.lr (0.5, 0.5, 10)" in lines_of(comparison(runs))
    renamed = [replace(run, name=f"run {place}") for place, run in enumerate(runs)]
    assert cells(every(renamed))["method.name"] == list(names)
    many = [
        replace(run, name=f"run {place}", settings={f"a.{n}": place for n in range(6)})
        for place, run in enumerate(runs * 2)
    ]
    assert "they differ in a.0, a.1, a.2, a.3 and 2 more" in lines_of(comparison(many))


def test_scales_are_told_in_one_line():
    """Where one was chosen."""
    runs = [run_of(0.5, scale="small"), run_of(0.5, name="b")]
    assert "scale: small, as the scenario stands" in lines_of(every(runs))
    assert not any(line.startswith("scale") for line in lines_of(every(runs[1:])))


def test_rows_are_chosen_by_label_or_key():
    """In their order; what is none is refused, with the nearest one."""
    groups = seeds_together([run_of(0.5)])
    found = chosen(groups, "virtual_s, Accuracy, global,bytes of all clients")
    assert [row.key for row in found] == ["virtual_s", "accuracy.global.value", "bytes"]
    assert list(cells(comparison([run_of(0.5)], names="joules"))) == ["energy of all clients"]
    with pytest.raises(UserError, match="no row is called 'acuracy'") as raised:
        chosen(groups, "acuracy")
    assert raised.value.hint.startswith("did you mean 'accuracy, global'? known: accuracy, global; ")


def test_amounts_of_a_row_have_one_unit_on_demand():
    """Of 12.4 ms and 3.1 s, as the label says, with as many decimals; words and unknown figures stay."""
    runs = [
        run_of(0.5, name=name, virtual_s=seconds)
        for name, seconds in zip("abc", (0.0124, 3.1, 0.25), strict=True)
    ]
    unknown = EnergyTotal(None, 0, 20)
    runs[1] = replace(runs[1], energy=unknown, joules_between=Interval(2, 5))
    found = cells(comparison(runs, names="virtual_s,joules", one_unit=True))
    assert found == {
        "virtual time (s)": ["0.012", "3.100", "0.250"],
        "energy of all clients (J)": ["10.0", "2.0 to 5.0", "10.0"],
    }
    (table,) = tables_of(comparison([*runs, runs[0]], names="virtual_s", one_unit=True))
    assert table.heads == ["run", "virtual time (s)"]
    assert [row[1] for row in table.rows] == ["0.012 *", "3.100  ", "0.250  ", "0.012 *"]


def test_pairs_stand_below_every_figure():
    """What groups of seeds are above the first one, with what their signs mean; none of runs alone."""
    first, second = seeds("a", [0.5, 0.6, 0.7]), seeds("b", [0.51, 0.62, 0.73])
    view = every([*first, *second])
    assert tables_of(view)[1].heads == ["", "b\nagainst a"]
    assert cells(view, 1)["accuracy, global"] == ["+2.0 ±2.5 points\n(not separable at 3 seeds)"]
    assert cells(view, 1)["virtual time"] == ["equal"]
    notes = lines_of(view)
    assert any(line.startswith("against: ") and "not corrected" in line for line in notes)
    assert "not separable: the interval contains 0" in notes
    assert not any(line.startswith("unpaired") for line in notes)
    other = every([*first, *seeds("b", [0.6, 0.7, 0.8], first=4)])
    assert cells(other, 1)["accuracy, global"][0].endswith("(not separable at 3 seeds, unpaired)")
    assert any(line.startswith("unpaired: ") for line in lines_of(other))
    assert len(tables_of(every([first[0], second[0]]))) == 1


def test_the_document_has_runs_averages_pairs_and_differences():
    """The settings that differ in the order of the runs."""
    runs = [
        *seeds("a", [0.5, 0.6]),
        *seeds("b", [0.5, 0.6]),
        *seeds("c", [0.7], settings={"local.epochs": 2}),
    ]
    found = document(Comparison(runs))
    assert [len(found[key]) for key in ("runs", "averages", "pairs", "published")] == [5, 2, 1, 0]
    (pair,) = found["pairs"]
    assert pair["figures"]["accuracy.global.value"]["interval_95"] == {"low": 0.0, "high": 0.0}
    assert found["differences"] == {
        "method": ["a", "a", "b", "b", "c"],
        "local.epochs": [None] * 4 + [2],
        "seed": [1, 2, 1, 2, 1],
    }


@pytest.mark.parametrize("asked", [8, None])
def test_rounds_of_few_say_so(asked):
    """Clients that come and go for minutes, in rounds of milliseconds."""
    run = dry("server.rounds=4", CHURN, f"server.participants={asked or 'null'}")
    assert run.turnout.asked == (asked or 20)
    assert run.turnout.merged < run.turnout.asked / 2
    (line,) = few(seeds_together([run]))
    assert line.startswith(
        f"quickstart: on average, {run.turnout.merged:.1f} of the {run.turnout.asked} clients asked for took"
    )
    assert line in lines_of(comparison([run]))
    assert few(seeds_together([dry("server.rounds=1")])) == []


def test_few_of_several_seeds_are_one_line():
    """The mean of the seeds; a stream asks for no rounds that few may miss."""
    runs = [replace(run, turnout=Turnout(10, 1 + run.seed, 1)) for run in seeds("a", [0.5, 0.5, 0.5])]
    (line,) = few(seeds_together(runs))
    assert line.startswith("a: on average, 1.0 of the 10 clients asked for")
    assert line.endswith("7.0 were away or busy and 2.0 were late or lost")
    assert dry("server.policy=fedasync", CHURN, "server.rounds=4").turnout is None
