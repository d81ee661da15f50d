"""The table that ``run`` prints: short, with who is ahead, what is bounded, and who was not there."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from commands import shown
from compared import RICH, lines_of, rich, tables_of
from edgefl.show.averages import seeds_together
from edgefl.show.comparison import comparison, few

from edgefl.analysis.measured import Measured
from edgefl.analysis.reached import Reached, Target, Waste
from edgefl.analysis.summary import Accuracy, summaries
from edgefl.analysis.turnout import Turnout
from edgefl.core.ledger import EnergyTotal
from edgefl.runs.dry import dry_run
from edgefl.show.formats.latex import latex

CHURN = "fleet={like: home-lab, availability: {name: markov, on: 1 min, off: 30 min}}"


@cache
def dry(*overrides):
    (found,) = dry_run("quickstart", ["sweep=null", "server.rounds=4", *overrides])
    return found.summary


def scored(name, accuracy=0.9, *, seed=1, scale=1.0, settings=None):
    """A dry run with an accuracy, that took ``scale`` times of all, and reached its target half way."""
    run = dry()
    took = Reached(
        run.virtual_s * scale / 2, 1, int(1000 * scale), 5, run.energy, accuracy=accuracy,
        wasted=Waste(0, 0.0, 0.0), last_below=None,
    )  # fmt: skip
    return replace(
        run,
        name=name,
        seed=seed,
        settings=settings,
        fleet_id="a",
        accuracy={"global": Accuracy(accuracy, None, 3, None, None, None)},
        target=Target(0.8, took, None),
        virtual_s=run.virtual_s * scale,
        virtual_s_between=None,
    )


def notes(runs):
    return lines_of(comparison(runs))


def test_three_rich_runs_fit_a_screen(tmp_path):
    """With waste, carbon, batteries, measures, two models and a target: at most 16 rows, without bounds."""
    (run,) = summaries([rich(tmp_path / "run").folder])
    (table,) = tables_of(comparison([replace(run, name=name, settings=None) for name in "abc"]))
    assert len(table.rows) <= 16
    assert {"wasted energy to 5%", "CO2e", "waited most for", "peak device memory"} <= {
        label.strip() for label, *_ in table.rows
    }
    assert not any(" to " in cell or "±" in cell for _, *cells in table.rows for cell in cells)
    assert RICH["evaluate"]["measures"][0] in str(table.rows)
    energy, total = run.energy._replace(energy_known=1), replace(run.carbon.emitted.total, known=1)
    took = replace(run.target.global_, energy=run.target.global_.energy._replace(energy_known=1))
    emitted = replace(run.carbon.emitted, total=total)
    carbon = replace(run.carbon, emitted=emitted, to_target=dict.fromkeys(run.carbon.to_target, emitted))
    target = replace(run.target, global_=took, personal=took)
    some = replace(run, energy=energy, carbon=carbon, target=target, refused=1, settings=None)
    (table,) = tables_of(comparison([replace(some, name=name) for name in "abc"]))
    assert len(table.rows) <= 16


def test_who_is_ahead_stands_in_one_line():
    """In accuracy and costs; what seeds leave open is told apart."""
    runs = [scored("slow", 0.95), scored("fast", 0.9, scale=0.5)]
    assert notes(runs)[0] == (
        "ahead, on one seed each: slow in global accuracy; fast in time to 80%, bytes to 80%, time"
    )
    spread = [(0.80, 0.81), (0.95, 0.83), (0.85, 0.90)]
    seeds = [
        scored(f"{name}, seed {seed}", each[place], seed=seed, settings={"seed": seed, "method": name})
        for seed, each in enumerate(spread)
        for place, name in enumerate("ab")
    ]
    assert "not separable over seeds: global accuracy" in notes(seeds)


def test_more_than_three_runs_have_a_row_each():
    """One table of at most nine columns in 100 characters, or fewer in less; the best of each is marked."""
    runs = [scored(f"run {place}, of a name", 0.9 + place / 100, scale=1 + place) for place in range(5)]
    for width, columns in ((100, 9), (60, 5)):
        lines = shown(comparison(runs), width).splitlines()
        rows = [line.split("│") for line in lines if "│" in line]
        assert len(rows) == 5
        assert columns - 2 <= len(rows[0]) <= columns
        assert max(map(len, lines)) <= width
        accuracies, times = ([row[place].strip() for row in rows] for place in (1, 2))
        assert [text.endswith("*") for text in accuracies] == [False] * 4 + [True]
        assert [text.endswith("*") for text in times] == [True] + [False] * 4
    assert "* best of its column" in notes(runs)


def test_marks_and_notes_are_of_what_is_shown():
    """An unknown figure has no mark, a mark that stands nowhere no note, what is known of some no column."""
    some = EnergyTotal(1.0, 5, 10)
    runs = [replace(scored(f"run {place}", 0.9), energy=some, joules_between=None) for place in range(4)]
    (table,) = tables_of(comparison(runs))
    assert "known part" not in table.heads
    assert not any(note.startswith(("*", "~")) for note in notes(runs))
    best = [*runs, scored("best", 0.95), replace(runs[0], accuracy={}, target=None, settings=None)]
    accuracies = [row[1] for row in tables_of(comparison(best))[0].rows]
    assert accuracies[-2:] == ["95.0% *", "-"]
    assert r"& -- &" in latex(comparison(best))


def test_a_name_is_broken_where_no_column_fits_beside_it():
    """A name is broken, and the first column stands beside it."""
    runs = [scored("a" * 50 + str(place), 0.9 + place / 100) for place in range(4)]
    lines = shown(comparison(runs), 40).splitlines()
    names = "".join(line.split("│")[0].strip() for line in lines if "│" in line)
    assert names == "".join(run.name for run in runs)
    assert all(any(f"{90 + place}.0%" in line for line in lines) for place in range(4))


def test_measures_have_their_unit_and_three_digits():
    """As with ``--all``: what is no amount of time, bytes or energy has no other text."""
    run = replace(scored("a"), measures={"logit-entropy": Measured(3, "nats", {"global": 1.82779})})
    (table,) = tables_of(comparison([run]))
    assert ["logit-entropy, global", "1.83 nats"] in table.rows


def test_bounds_stand_in_one_line():
    """The widest of each kind, of all that is shown; ``--all`` has them cell by cell."""
    run = dry()
    (line,) = [note for note in notes([run]) if note.startswith("bounds")]
    low, high = run.virtual_s_between
    least, most = run.joules_between
    assert line == (
        f"bounds, where known: times {low / run.virtual_s:.2g}x to {high / run.virtual_s:.2g}x, energies "
        f"{least / run.energy.joules:.2g}x to {most / run.energy.joules:.2g}x what is shown; each with --all"
    )


@pytest.mark.parametrize("asked", [8, None])
def test_rounds_of_few_say_so(asked):
    """Clients that come and go for minutes, in rounds of milliseconds."""
    run = dry(CHURN, f"server.participants={asked or 'null'}")
    turnout = run.turnout
    assert turnout.asked == (asked or 20)
    assert turnout.merged < turnout.asked / 2
    (line,) = few(seeds_together([run]))
    assert line.startswith(
        f"{run.name}: on average, {turnout.merged:.1f} of the {turnout.asked} clients asked for took part"
    )
    assert line in notes([run])
    assert few(seeds_together([dry()])) == []
    assert dry().turnout == (10, 10.0, 10.0)


def test_lost_jobs_are_no_participation():
    """Of all that began, those that were lost are told apart from those that were not there."""
    run = dry("fleet={like: home-lab, failures: {crash: 0.9}}")
    (line,) = few(seeds_together([run]))
    assert "away or busy" not in line
    assert line.endswith(f"{run.turnout.dispatched - run.turnout.merged:.1f} were late or lost")


def test_few_of_several_seeds_are_one_line():
    """The mean of the seeds."""
    runs = [
        replace(
            scored(f"a, seed {seed}", seed=seed, settings={"seed": seed}), turnout=Turnout(10, 2 + seed, 1)
        )
        for seed in range(3)
    ]
    (line,) = few(seeds_together(runs))
    assert line.startswith("a: on average, 1.0 of the 10 clients asked for")
    assert line.endswith("7.0 were away or busy and 2.0 were late or lost")


def test_a_stream_asks_for_no_rounds():
    """An asynchronous policy keeps clients at work; it has no round that few may miss."""
    assert dry("server.policy=fedasync", CHURN).turnout is None
