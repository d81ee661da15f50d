"""Rows of a comparison as numbers: their place in ``compare --json``, units, bounds, waste to a target."""

from __future__ import annotations

from dataclasses import replace

import pytest
from commands import shown
from compared import at, every, rich
from edgefl.show.averages import Compared, Row, seeds_together
from edgefl.show.rows import rows

from edgefl.analysis.reached import Waste
from edgefl.core.corners import Interval
from edgefl.core.documents import document
from edgefl.core.ledger import EnergyTotal
from edgefl.store import read

# Rows of several figures, of words, and of what is no number of the whole run.
WORDS = (" / ", "of clients", "stopped by", "critical path", "download/compute", ", both")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two runs that differ by seed alone, with something in every row."""
    return rich(tmp_path_factory.mktemp("rows") / "rich", sweep={"seed": [1, 2]})


@pytest.fixture(scope="module")
def runs(results):
    """Their summaries."""
    return results.summary()


def test_a_key_is_the_place_of_its_figure(runs):
    """What ``--json`` has there equals the figure, for every run and every row that has one number."""
    found = list(rows(seeds_together(runs)))
    for run in runs:
        record = document(run)
        for row in found:
            if row.figure is not None and row.figure(run) is not None:
                assert at(record, row.key) == row.figure(run), row.label
    told = {row.key for row in found if row.figure and any(row.figure(run) is not None for run in runs)}
    assert {"accuracy.global.value", "virtual_s", "down_bytes", "up_bytes", "flops", "joules"} <= told
    assert {"target.global.t_s", "target.personal.joules", "target.global.bytes"} <= told
    assert {"wasted.down_bytes + wasted.up_bytes", "wasted.joules", "waiting_joules"} <= told
    assert {"batteries.pixel-6.days", "carbon.emitted.total.grams", "carbon.emitted.server.grams"} <= told
    assert {"carbon.to_target.global.total.grams", "fairness", "host_s", "peak_bytes"} <= told
    assert any(key.startswith("measures.class-accuracy.figures.") for key in told)
    for row in found:
        assert (row.figure is None) == any(word in row.label for word in WORDS), row.label
        assert bool(row.key) == (row.figure is not None), row.label


def test_a_key_that_is_nowhere_is_an_error(runs):
    """A mistyped one is no unknown figure; a sum of an unknown one is unknown."""
    record = document(runs[0])
    with pytest.raises(KeyError):
        at(record, "down_bites")
    assert at({"a": {"b": 1}, "c": 2}, "a.b + c") == 3
    assert at({"a": {"b": None}, "c": 2}, "a.b + c") is None


def test_units_and_directions(runs):
    """Each figure has the unit of its text, and says which one is ahead."""
    found = {row.label: (row.unit, row.better) for row in rows(seeds_together(runs))}
    assert found["accuracy, global"] == ("share", "higher")
    assert found["virtual time"] == ("s", "lower")
    assert found["bytes to 5%, global"] == ("B", "lower")
    assert found["work of all clients"] == ("FLOP", "lower")
    assert found["wasted energy"] == ("J", "lower")
    assert found["CO2e"] == ("g", "lower")
    assert found["  one charge lasts"] == ("days", "higher")
    assert found["host time"] == ("s", "")
    assert {unit for unit, _ in found.values()} <= {"s", "B", "J", "FLOP", "g", "share", "days", ""}


def test_a_value_is_the_mean_that_the_text_shows(runs):
    """With its bounds; of runs that lack it, of those that have it."""
    (one,) = seeds_together(runs)
    by_label = {row.label: row for row in rows([one])}
    time = by_label["virtual time"].value(one)
    assert time.mean == pytest.approx(sum(run.virtual_s for run in runs) / 2)
    energy = by_label["energy of all clients"].value(one)
    assert energy.between.low == pytest.approx(sum(run.joules_between.low for run in runs) / 2)
    assert time.runs == 2
    row = Row(
        "", str, figure=lambda run: 3.0 if run is runs[0] else None, bounds=lambda _: Interval(1.0, None)
    )
    assert row.value(one) == (3.0, 1, Interval(1.0, None), None)
    times = [run.virtual_s for run in runs]
    half = 12.706205 * abs(times[0] - times[1]) / 2
    assert time.interval_95 == pytest.approx((time.mean - half, time.mean + half))
    assert Row("", str).value(one) is None
    assert replace(row, figure=lambda _: None).value(one) is None


def test_a_deviation_of_rounding_is_not_shown(runs):
    """Of figures that are equal but for their last digits."""
    one = Compared("equal", tuple(runs))
    figures = {id(run): value for run, value in zip(runs, (0.1 + 0.2, 0.3), strict=True)}
    assert one.show(str, lambda run: figures[id(run)]) in {"0.3", "0.30000000000000004"}
    assert "±" in one.show(str, lambda run: figures[id(run)] + (1e-9 if run is runs[0] else 0))


def test_an_energy_of_some_clients_is_none_of_all(runs):
    """It is told apart; bytes are those of all clients anyway."""
    partly = replace(runs[0], energy=EnergyTotal(1.0, 5, 6))
    one = Compared("partly", (partly,))
    found = {row.key or row.label.strip(): row for row in rows([one])}
    assert found["joules"].value(one) is found["wasted.joules"].value(one) is None
    assert found["joules"].part.cell(one) == "1 J (5 of 6 clients)"
    assert found["wasted.joules"].cell(one).endswith(", 5 of 6 clients)")
    assert found["down_bytes"].value(one).mean == partly.down_bytes
    assert found["wasted.down_bytes + wasted.up_bytes"].value(one).mean == partly.wasted.bytes


def reckoned(reader, t_s, turn):
    """What had been wasted by an evaluation, job by job."""
    jobs = [
        job
        for job in reader.rows("jobs")
        if job["ending"] != "merged" and (job["ended_s"], job["ended_turn"]) <= (t_s, turn)
    ]
    events = [event for event in reader.rows("events") if event["job"] in {job["job"] for job in jobs}]
    settled = sum(event["joules"] for event in events if event["kind"] == "settled")
    return (
        sum(job["down_bytes"] + job["up_bytes"] for job in jobs),
        sum(event["joules"] for event in events) - settled,
        sum(event["seconds"] for event in events),
    )


def test_waste_until_a_target_is_that_of_jobs_that_had_ended(results):
    """Reckoned from the events of jobs that had ended unmerged when the server evaluated; more later on."""
    run = results.runs[0]
    with read(run.folder) as reader:
        scores = [row for row in reader.rows("evaluations", "version") if row["model"] == "global"]
        turns = {
            row["version"]: row["turn"]
            for row in reader.query("SELECT * FROM server_events WHERE kind = 'evaluated'")
        }
        best = max(range(len(scores)), key=lambda place: scores[place]["accuracy"])
        found = run.summary(scores[best]["accuracy"]).target.global_
        row = scores[best]
        expected = reckoned(reader, row["t_s"], turns[row["version"]])
    assert (found.wasted.bytes, found.wasted.joules, found.wasted.client_s) == pytest.approx(expected)
    assert found.wasted.bytes > 0
    assert found.wasted.bytes < found.bytes
    assert found.wasted.joules < found.energy.joules
    if best:
        assert found.last_below.wasted.bytes <= found.wasted.bytes


def test_jobs_that_are_cut_after_an_evaluation_are_not_wasted_by_then(tmp_path):
    """At the end of the rounds the server evaluates, and then cuts what is in flight, in no time."""
    policy = {"server": {"participants": 3, "rounds": 3, "policy": {"name": "fedbuff", "buffer": 2}}}
    evaluate = {"evaluate": {"every": 3, "target": 0.01, "models": ["global"]}}
    run = rich(tmp_path / "cut", **policy, **evaluate).runs[0]
    found = run.summary()
    cut = [job for job in run.table("jobs") if job["ending"] == "cut"]
    assert {job["ended_s"] for job in cut} == {found.target.global_.t_s}
    assert found.wasted.bytes > 0
    assert found.target.global_.wasted == Waste(0, 0.0, 0.0)


def test_waste_to_a_target_is_shown_where_there_was_some(runs):
    """A row for bytes and one for energy, of each model; none where nothing was wasted until then."""
    wasteful = shown(every(runs), 100)
    assert "wasted bytes to 5%, global" in wasteful
    assert "wasted energy to 5%, personal" in wasteful
    nothing = Waste(0, 0.0, 0.0)
    clean = [
        replace(
            run,
            target=replace(
                run.target,
                global_=replace(run.target.global_, wasted=nothing),
                personal=replace(run.target.personal, wasted=nothing),
            ),
        )
        for run in runs
    ]
    assert "to 5%" in shown(every(clean), 100)
    assert "wasted bytes to" not in shown(every(clean), 100)
