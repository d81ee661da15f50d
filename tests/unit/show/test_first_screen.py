"""The first screen: what was compared, who is ahead, and whether that holds on other numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

import edgefl
from edgefl.core.errors import UserError
from edgefl.show.compare import PairTable
from edgefl.show.page.build import page
from edgefl.show.page.sections import verdict
from edgefl.show.page.sections.verdict import verdicts
from edgefl.show.table import Table

# One kind of client has few numbers.
FLEET = {"title": "at home", "members": [{"device": "raspberry-pi-4b", "link": "wifi-pi4"}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Five runs that trained nothing, of two methods."""
    sweep = {"runs": [{"name": f"rate {rate}", "local.optimizer.lr": rate} for rate in (0.1, 0.2, 0.3, 0.4)]}
    sweep["runs"].append({"name": "long", "local.epochs": 9, "method": "spherefed"})
    out = tmp_path_factory.mktemp("first") / "group"
    settings = {"server.rounds": 1, "sweep": sweep, "evaluate.target": None, "fleet": FLEET}
    return edgefl.run("quickstart", overrides=settings, engine="null", out=out).folder


@pytest.fixture(scope="module")
def record(folder):
    """What their page is told."""
    return page([folder]).told


def first_screen(told):
    """The section that a page begins with."""
    return verdict.section(told, [])


def _only(record, groups):
    """The page of some of the groups alone."""
    rows = [
        replace(row, values=[row.values[one] for one in groups], winner=None, tied=[])
        for row in record.figures
    ]
    return replace(record, groups=[record.groups[one] for one in groups], figures=rows)


def _won(record, **more):
    """The page with one figure, in which the first group is ahead."""
    row = verdicts(record)[0][0]
    return replace(record, figures=[replace(row, **{"winner": 0, "tied": [], **more})])


def test_facts_name_the_fleet_and_the_differences(record):
    """Methods, data, the fleet by its name with its devices, rounds, seeds, and the settings that differ."""
    facts = first_screen(record).facts
    assert list(facts) == ["methods", "rounds", "data sets", "seeds", "fleet", "links", "differences"]
    assert facts["methods"] == "fedavg, spherefed"
    assert facts["fleet"] == "at home: 20 clients (20 raspberry-pi-4b)"
    assert "local.epochs" in facts["differences"]


def test_few_runs_have_a_column_each(record):
    """One run has its figures alone; up to four have one table, whose last column says who is ahead."""
    (alone,) = [one for one in first_screen(_only(record, [0])).tables if not one.folded]
    assert (alone.head, alone.caption) == (["figure", "rate 0.1"], "Verdict: the run's figures")
    (few,) = [one for one in first_screen(_only(record, [0, 1, 4])).tables if not one.folded]
    assert few.head == ["figure", "rate 0.1", "rate 0.2", "long", "ahead"]


def test_many_runs_have_a_row_each(record):
    """First a table that says who is ahead in each figure, then one that sorts, with a row for each run."""
    ahead, every = [one for one in first_screen(record).tables if not one.folded]
    assert ahead.head == ["figure", "best", "ahead"]
    assert [row[0].text for row in ahead.rows] == [one.metric.label for one in verdicts(record)[0]]
    assert every.sorts
    assert every.many
    assert [row[0].text for row in every.rows] == ["rate 0.1", "rate 0.2", "rate 0.3", "rate 0.4", "long"]
    assert len({one.caption for one in first_screen(record).tables}) == len(first_screen(record).tables)


def test_signs_are_explained(record):
    """A sign stands for words that a screen reader reads, and is explained below."""
    shown = first_screen(_won(record, close_seeds=5))
    cell = shown.tables[0].rows[0][1]
    assert (cell.sign, cell.meaning) == ("≈", "best, but not separable")
    assert shown.notes[0].startswith("≈ best, but not separable from another: the 95% interval")
    assert shown.tables[0].rows[0][2].text == "not separable at 5 seeds"


def test_intervals_and_differences_are_explained(record):
    """Where there are seeds, what stands behind ± and what was subtracted from what."""
    notes = ["± 95% interval", "against: means of the differences"]
    cells = [["virtual time", "-1 ±2 s\n(not separable at 5 seeds)"]]
    pairs = PairTable(Table(["", "b\nagainst a"], cells), notes[1:])
    shown = first_screen(replace(record, pairs=pairs, signs=[*notes, "to a target: the first"]))
    assert [note for note in shown.notes if note.startswith(("±", "against", "to a"))] == notes
    (table,) = [one for one in shown.tables if one.caption == "Differences over seeds, with 95% intervals"]
    assert table.head == ["figure", "b against a"]
    ((label, cell),) = table.rows
    assert (label.text, cell.text, cell.below) == ("virtual time", "-1 ±2 s", "(not separable at 5 seeds)")


def test_one_seed_says_nothing_about_chance(record):
    """Where runs have one seed each, and where some have."""

    def notes(runs):
        groups = [replace(group, runs=own) for group, own in zip(record.groups, runs, strict=True)]
        return " ".join(first_screen(replace(_won(record), groups=groups)).notes)

    assert "Each was run with one seed" in notes([[0], [1], [2], [3], [4]])
    assert "2 of 5 were run with one seed" in notes([[0], [1], [2, 3], [2, 3], [2, 3]])
    assert "seed:" not in notes([[0, 1]] * 5)


def test_the_sensitivity_tells_whether_the_order_holds(folder):
    """A run that trains longer takes more time and energy on all numbers; tables say how much."""
    studied = page(sorted(folder.glob("0*"))[-2:], sensitivity=1).told
    shown = first_screen(studied)
    found = {one.metric.key: one for one in studied.figures}
    assert (found["virtual_s"].order, found["joules"].order) == ("holds", "holds")
    below = {row[0].text: row[-1].below for row in shown.tables[0].rows}
    assert below["virtual time"] == below["energy of all clients"] == "holds over all intervals"
    folded = [one.caption for one in shown.tables if one.folded]
    assert folded == [
        f"What {one} depends on: each number alone, then all together" for one in ("energy", "time")
    ]
    (words,) = shown.texts.values()
    assert "rate 0.4 takes less energy than long over all intervals" in words


@pytest.mark.parametrize(
    ("numbers", "words"), [("abc", "depends on a, b and 1 more"), ("", "depends on several numbers together")]
)
def test_what_turns_the_order_is_named(record, numbers, words):
    """A few numbers, or that it takes several at once."""
    turned = _won(record, order="depends", depends_on=list(numbers))
    assert first_screen(turned).tables[0].rows[0][2].below == words


def test_what_cannot_be_told_is_said(record, folder, tmp_path):
    """Without the option how to ask; where there is nothing to sweep, that; a factor below 1 is refused."""
    opened = _won(record, order="open")
    asked = first_screen(replace(opened, dependence=None)).notes
    assert any("edgefl report --sensitivity 1 tells" in note for note in asked)
    one = page([min(folder.glob("0*"))], sensitivity=1).told
    assert (one.dependence.found, one.dependence.why) == (None, "fewer than two runs are done")
    told = first_screen(replace(opened, dependence=one.dependence)).notes
    assert any("is not known: fewer than two runs are done." in note for note in told)
    with pytest.raises(UserError, match="factor must be between 1"):
        page([tmp_path / "no-run"], sensitivity=0.5)
