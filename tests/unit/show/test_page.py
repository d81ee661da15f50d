"""Pages: of runs that are not whole, of what their sections are given, and the first screen."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from compared import RICH, rich
from paged import paged
from unfinished import UNPOWERED

import edgefl
from edgefl.analysis.run import Run
from edgefl.core.errors import UserError
from edgefl.core.yamls import Document
from edgefl.planning.describe import describe
from edgefl.show.page.build import page as made
from edgefl.show.page.records import Read, setting
from edgefl.show.page.sections import partition, verdict
from edgefl.show.page.sections.verdict import verdicts
from edgefl.store.reader import read


def ran(out, **settings):
    """The folder of a short run without training."""
    few = {"name": "state", "sweep": None, "server.rounds": 3, **settings}
    return edgefl.run("quickstart", overrides=few, engine="null", out=out).folder


def test_what_did_not_happen_is_said(tmp_path):
    """Each section in its own words, no unknown energy where nobody spent any, and the whole reason."""
    fleet = {"members": [{"device": "raspberry-pi-zero-2w", "link": "ethernet"}]}
    asked = {"model.hidden": [9000, 9000], "evaluate.measures": ["class-accuracy"]}
    folder = ran(tmp_path / "nobody", fleet=fleet, **asked)
    other = ran(tmp_path / "done")
    found = paged(folder)
    words = {name: found.sections[name].nothing for name in ("costs", "devices", "measures", "curves")}
    assert words == {
        "costs": "No job has ended yet, so nothing was spent.",
        "devices": "No client took part.",
        "measures": "Nothing was evaluated.",
        "curves": "No run has evaluated a model yet.",
    }
    nothing = "costs", "waste", "devices", "measures", "accuracy", "pareto", "published"
    assert [found.plots[one] for one in nothing] == [[]] * 7
    assert found.plots["partition"][0]["samples"]
    assert found.plots["memory"]
    reason = found.told.runs[0].summary.reason
    assert found.sections["verdict"].warnings == [f"state failed: {reason}"]
    assert len(reason) > 200
    # Of two runs of one name it is said which of them is not done.
    beside = paged(folder, other)
    (warning,) = beside.sections["verdict"].warnings
    assert warning.startswith("state, nobody")
    energies = {row.metric.key: row.values for row in beside.told.figures if row.metric.unit == "J"}
    assert [energies[key][0] for key in ("joules", "waiting_joules")] == [None, None]
    assert energies["waiting_joules"][1].mean > 0
    assert [setting(value, "key") for value in (None, "", [], 8)] == ["not set", "empty", "none", "8"]
    assert setting(2e5, "server.uplink") == "200 kbit/s"


@pytest.mark.usefixtures("unfinished")
def test_energies_and_data_that_nobody_knows_are_said(tmp_path):
    fleet = {"members": [{"device": UNPOWERED, "link": "ethernet"}]}
    found = paged(ran(tmp_path / "unpowered", fleet=fleet))
    assert {one["figure"] for one in found.plots["costs"]} == {"bytes by part"}
    assert found.sections["devices"].nothing.startswith("No energy is known")
    found = paged(ran(tmp_path / "run", **{"task.samples": 20, "task.partition": "iid"}))
    (block,) = found.plots["partition"]
    assert (block["client"], block["samples"]) == ([], [])
    assert block["notes"] == {"": "clients have numbers of samples and no data."}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with late jobs, batteries, emissions, measures and a target."""
    pairs = {"name": "linear-cka", "pairs": True, "samples": 20}
    evaluate = {**RICH["evaluate"], "measures": [*RICH["evaluate"]["measures"], pairs]}
    return rich(tmp_path_factory.mktemp("sections") / "rich", evaluate=evaluate).runs[0]


@pytest.fixture(scope="module")
def page(run):
    return paged(run.folder)


def test_of_many_clients_some_are_listed(run, monkeypatch):
    """At even distances, the first and the last among them; their counts are their own."""
    monkeypatch.setattr(partition, "_MOST_CELLS", 30)
    with read(run.folder) as reader:
        found = partition.read(Read(Run(reader), None, 0, 9))
    assert (found["client"], found["left"]) == ([0, 2, 5], 3)
    samples = {row["client"]: row["samples"] for row in run.table("clients")}
    assert [sum(row) for row in found["samples"]] == [samples[client] for client in found["client"]]


QUANTILES = {"value_low": 0.1, "value": 0.5, "value_high": 0.9, "least": 0.0, "largest": 1.0}


def test_measures_are_the_tables(page, run):
    """Each class, layer and round; of values of clients their quantiles; of pairs the last round's matrix."""
    cells = defaultdict(list)
    for row in run.table("measures"):
        what = ", ".join(filter(None, (row["measure"], row["figure"], row["model"])))
        cells[what, row["client"] is None, row["round"], row["label"]].append(row["value"])
    assert page.plots["measures"]
    for one in page.plots["measures"]:
        what, *_ = one["what"].partition(", over clients")
        for name, share in QUANTILES.items() if one["what"] != what else [("value", 1.0)]:
            for round_, value in zip(one["round"], one[name], strict=True):
                own = cells[what, one["what"] == what, round_, ""]
                assert value == pytest.approx(np.quantile(own, share))
    seen = set()
    for one in page.plots["parts"]:
        what, _, whose = one["what"].partition(", by ")
        seen.add(what)
        if "pairs" in what:
            continue
        if "over clients" not in whose:
            for label, values in zip(one["label"], one["value"], strict=True):
                for round_, value in zip(one["round"], values, strict=True):
                    assert [value] == cells.get((what, True, round_, label), [None])[-1:]
    assert len(seen) > 1


def test_pairs_of_clients_are_the_last_rounds_matrix(page, run):
    """Symmetric, without a diagonal."""
    cells = {
        (row["client"], row["label"]): row["value"]
        for row in run.table("measures")
        if row["figure"] == "pairs relu1" and row["round"] == 2
    }
    (one,) = (each for each in page.plots["parts"] if "pairs relu1" in each["what"])
    assert one["along"] == "client, in round 2"
    found = np.array(one["value"], dtype=float)
    assert np.isnan(np.diagonal(found)).all()
    assert np.array_equal(found, found.T, equal_nan=True)
    (client, label), value = next(iter(cells.items()))
    assert found[one["label"].index(label), one["round"].index(client)] == value


def test_provenance_is_the_runs_own(page, run):
    """Its settings, events and machine, and the source of every number, as `edgefl show` prints it."""
    section = page.sections["provenance"]
    ((name, event_hash, how, machine),) = [[cell.text for cell in row] for row in section.tables[0].rows]
    with read(run.folder) as reader:
        resolved, host = reader.document.data, reader.host()
    scenario = section.texts[f"Resolved scenario of {name}"]
    assert Document.parse(scenario, "scenario").data == resolved["scenario"]
    assert (event_hash, how) == (page.told.runs[0].summary.event_hash, "in one go")
    # Where the data lie says more of the user than of the run.
    assert (host["libraries"]["numpy"] in machine, "data_dir" in machine) == (True, False)
    (fleet,) = (text for title, text in section.texts.items() if title.startswith("Fleet of "))
    assert Document.parse(fleet, "fleet").data["carbon"]["embodied"]["hours"] == "busy"
    found = defaultdict(list)
    for of, *number in section.tables[1].rows:
        found[of.text].append(tuple(cell.text for cell in number))
    for kind, name in [("device", "pixel-6"), ("device", "raspberry-pi-4b"), ("link", "4g")]:
        assert found[f"{kind} {name}"] == describe(kind, name).rows
    assert {"regions.DE", "server.power", "server.pue"} <= {name for name, *_ in found["carbon"]}


# One kind of client has few numbers.
FLEET = {"title": "at home", "members": [{"device": "raspberry-pi-4b", "link": "wifi-pi4"}]}


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    """Five runs that trained nothing, of two methods."""
    sweep = {"runs": [{"name": f"rate {rate}", "local.optimizer.lr": rate} for rate in (0.1, 0.2, 0.3, 0.4)]}
    sweep["runs"].append({"name": "long", "local.epochs": 9, "method": "spherefed"})
    out = tmp_path_factory.mktemp("first") / "group"
    settings = {"server.rounds": 1, "sweep": sweep, "evaluate.target": None, "fleet": FLEET}
    return edgefl.run("quickstart", overrides=settings, engine="null", out=out).folder


@pytest.fixture(scope="module")
def record(five):
    return made([five]).told


def first_screen(told):
    return verdict.section(told)


def _only(record, groups):
    """The page of some of the groups alone."""
    rows = [
        replace(row, values=[row.values[one] for one in groups], winner=None, tied=[])
        for row in record.figures
    ]
    return replace(record, groups=[record.groups[one] for one in groups], figures=rows)


def _won(record, **more):
    row = verdicts(record)[0][0]
    return replace(record, figures=[replace(row, **{"winner": 0, "tied": [], **more})])


def test_few_runs_have_a_column_each_and_many_a_row(record):
    """First a table that says who is ahead in each figure, then one that sorts."""
    (alone,) = [one for one in first_screen(_only(record, [0])).tables if not one.folded]
    assert (alone.head, alone.caption) == (["figure", "rate 0.1"], "Verdict: the run's figures")
    (few,) = [one for one in first_screen(_only(record, [0, 1, 4])).tables if not one.folded]
    assert few.head == ["figure", "rate 0.1", "rate 0.2", "long", "ahead"]
    ahead, every = [one for one in first_screen(record).tables if not one.folded]
    assert ahead.head == ["figure", "best", "ahead"]
    assert [row[0].text for row in ahead.rows] == [one.metric.label for one in verdicts(record)[0]]
    assert (every.sorts, every.many) == (True, True)
    assert [row[0].text for row in every.rows] == ["rate 0.1", "rate 0.2", "rate 0.3", "rate 0.4", "long"]
    facts = first_screen(record).facts
    assert facts["methods"] == "fedavg, spherefed"
    assert facts["fleet"] == "at home: 20 clients (20 raspberry-pi-4b)"
    assert "local.epochs" in facts["differences"]


@pytest.mark.nightly
def test_the_sensitivity_tells_whether_the_order_holds(five):
    studied = made(sorted(five.glob("0*"))[-2:], sensitivity=1).told
    shown = first_screen(studied)
    found = {one.metric.key: one for one in studied.figures}
    assert (found["virtual_s"].order, found["joules"].order) == ("holds", "holds")
    below = {row[0].text: row[-1].below for row in shown.tables[0].rows}
    assert below["virtual time"] == below["energy of all clients"] == "holds over all intervals"
    folded = [one.caption.split(":")[0] for one in shown.tables if one.folded]
    assert folded == ["What energy depends on", "What time depends on"]
    (words,) = shown.texts.values()
    assert "rate 0.4 takes less energy than long over all intervals" in words


def test_what_turns_the_order_and_what_cannot_be_told_is_said(record, five, tmp_path):
    """Without the option how to ask; where there is nothing to sweep, that; a factor below 1 is refused."""
    told = {"abc": "depends on a, b and 1 more", "": "depends on several numbers together"}
    for numbers, words in told.items():
        turned = _won(record, order="depends", depends_on=list(numbers))
        assert first_screen(turned).tables[0].rows[0][2].below == words
    opened = _won(record, order="open")
    asked = first_screen(replace(opened, dependence=None)).notes
    assert any("edgefl report --sensitivity 1 tells" in note for note in asked)
    one = made([min(five.glob("0*"))], sensitivity=1).told
    assert (one.dependence.found, one.dependence.why) == (None, "fewer than two runs are done")
    told = first_screen(replace(opened, dependence=one.dependence)).notes
    assert any("is not known: fewer than two runs are done." in note for note in told)
    with pytest.raises(UserError, match="factor must be between 1"):
        made([tmp_path / "no-run"], sensitivity=0.5)
