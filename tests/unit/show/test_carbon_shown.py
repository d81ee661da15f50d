"""Emissions in the tables of run, check and compare."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module

import pytest
from commands import shown
from compared import emission, every
from edgefl.show.averages import averages, seeds_together
from edgefl.show.comparison import dry_runs

from edgefl.analysis.carbon import Amount
from edgefl.analysis.reached import Target
from edgefl.core.corners import Interval
from edgefl.core.documents import document
from edgefl.core.units import show_grams
from edgefl.runs import run
from edgefl.runs.dry import dry_run
from edgefl.store import read, read_plan

ALL = "carbon: {regions: DE, server: {power: 20 W}, embodied: busy}"


@cache
def dry(carbon="", seed=7):
    """A dry run of quickstart on its boards."""
    fleet = f"fleet={{like: home-lab, {carbon}}}"
    (found,) = dry_run("quickstart", ["sweep=null", "server.rounds=3", f"seed={seed}", fleet])
    return found


def cells(table, width=200):
    """The table's cells by label."""
    lines = [line.split("│") for line in shown(table, width).splitlines() if "│" in line]
    return {label.strip(): [cell.strip() for cell in rest] for label, *rest in lines}


def test_rows_of_a_comparison():
    """Every component that some run counts; a run that does not count it has "-". The boundary is below."""
    with_all, energy_alone, none = (
        dry(each).summary for each in (ALL, "carbon: {regions: FR, network: '0 kWh/GB'}", "")
    )
    table = every([with_all, energy_alone, none])
    rows = cells(table)
    for name in ("devices", "network", "server", "embodied"):
        own = getattr(with_all.carbon.emitted, name)
        assert rows[name][0] == emission(own)
        assert rows[name][2] == "-"
    assert rows["CO2e"] == [
        emission(with_all.carbon.emitted.total),
        emission(energy_alone.carbon.emitted.total),
        "-",
    ]
    assert rows["network"][1] == "0 g"
    assert rows["server"][1] == rows["embodied"][1] == "-"
    assert rows["idle while waiting, apart"][0] == emission(with_all.carbon.emitted.waiting)
    text = " ".join(shown(table, 400).split())
    assert with_all.carbon.boundary in text
    assert energy_alone.carbon.boundary in text


def test_nothing_is_said_of_carbon_where_nobody_asks():
    """Neither a row, nor a column, nor a line."""
    without = dry()
    for table in (every([without.summary]), dry_runs([without])):
        assert "CO2e" not in shown(table, 200)


def test_a_dry_run_has_a_column_and_rows():
    """``check`` shows the sum beside the energy, and below it the components."""
    text = shown(dry_runs([dry(ALL), dry()]), 300)
    head, *_ = text.splitlines()
    assert head.rstrip().endswith("CO2e")
    first, second, *_ = (line for line in text.splitlines() if line.startswith("quickstart"))
    total = dry(ALL).summary.carbon.emitted.total
    assert first.rstrip().endswith(emission(total))
    assert second.rstrip().endswith("-")
    assert cells(dry_runs([dry(ALL)]), 300)["server"] == [emission(dry(ALL).summary.carbon.emitted.server)]


def test_a_target_has_a_row():
    """Reached, not reached, and of runs without carbon and without the model."""
    run = dry(ALL).summary
    emitted = run.carbon.emitted
    target = Target(0.9, None, None)
    scored = replace(run, target=target, accuracy={"global": None})
    reached = replace(scored, carbon=replace(run.carbon, to_target={"global": emitted}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("edgefl.show.rows"), "_accuracies", lambda *_, **__: iter(()))
        patch.setattr(import_module("edgefl.show.comparison"), "signs", lambda *_: iter(()))
        lacking = replace(dry().summary, target=target), replace(scored, accuracy={"personal": None})
        rows = cells(every([reached, scored, *lacking]))
    assert rows["CO2e to 90%, global"] == [emission(emitted.total), "not reached", "-", "-"]


def test_seeds_are_averaged():
    """Runs that differ in their seeds alone, with the interval; also in the document."""
    runs = [replace(dry(ALL, seed=seed).summary, settings={"seed": seed}, fleet_id="same") for seed in (7, 8)]
    (one,) = compared = seeds_together(runs)
    assert len(one.runs) == 2
    cell = cells(every(runs))["CO2e"][0]
    grams = [run.carbon.emitted.total.grams for run in runs]
    assert cell.startswith(f"{show_grams(sum(grams) / 2)} ±")
    (average,) = averages(compared)
    assert average.figures["carbon.emitted.total.grams"].mean == pytest.approx(sum(grams) / 2)
    assert document(runs[0])["carbon"]["regions"] == {"DE": 20}


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (
            Amount(10.0, 1, 2, Interval(5, 30)),
            Amount(20.0, 2, 2, Interval(15, 25)),
            "20 g (1 of 2) (10 to 27.5)",
        ),
        (Amount(10.0, 1, 2, Interval(5, None)), Amount(20.0, 1, 2, Interval(15, None)), "at least 10 g"),
        (
            Amount(10.0, 2, 2, Interval(5, 30)),
            Amount(20.0, 2, 2, Interval(15, 25)),
            f"15 g ±{show_grams(12.7062 * 5)} (10 to 27.5)",
        ),
        (Amount(10.0, 2, 2, Interval(5, 30)), Amount(20.0, 2, 2), f"15 g ±{show_grams(12.7062 * 5)}"),
    ],
)
def test_an_average_has_the_bounds_of_all_its_runs(first, second, text):
    """Their means; none where one has no bounds. What is known of some clients is no amount of all."""
    runs = []
    for seed, amount in ((7, first), (8, second)):
        one = dry(ALL, seed=seed).summary
        carbon = replace(one.carbon, emitted=replace(one.carbon.emitted, total=amount))
        runs.append(replace(one, settings={"seed": seed}, fleet_id="same", carbon=carbon))
    assert cells(every(runs))["CO2e"] == [text]


def test_a_runs_directory_has_all_it_takes(tmp_path, monkeypatch):
    """Its summary is the dry run's, without the user's file; a plan that is read back is the same."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "grid.csv"
    path.write_text("region,hour,g_per_kwh\nroof,0,45\n", encoding="utf-8")
    carbon = "carbon: {regions: {roof: 1, PL: 1}, grid: grid.csv, server: {power: 20 W, region: IE}}"
    settings = ["sweep=null", "server.rounds=2", f"fleet={{like: home-lab, {carbon}}}"]
    (dry_run_,) = dry_run("quickstart", settings)
    (found,) = run("quickstart", overrides=settings, engine="null", out=tmp_path / "out").runs
    path.unlink()
    assert found.summary().carbon == dry_run_.summary.carbon
    with read(found.folder) as reader:
        record = read_plan(reader).fleet.carbon
    assert record.model_dump(mode="json") == reader.meta["carbon"]
    assert record.regions["roof"].g_per_kwh == "45"
