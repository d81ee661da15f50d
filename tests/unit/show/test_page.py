"""Pages: of runs that are not whole, of what their sections are given, and the first screen."""

import shutil
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from compared import rich
from hooks import Hooks
from paged import paged
from unfinished import UNPOWERED

import edgefl
from edgefl.analysis.run import Run
from edgefl.core.errors import UserError
from edgefl.core.yamls import Document
from edgefl.planning.describe import describe
from edgefl.show.compare import PairTable
from edgefl.show.page.build import page as made
from edgefl.show.page.cells import setting
from edgefl.show.page.records import Read
from edgefl.show.page.sections import measures, partition, verdict
from edgefl.show.page.sections.verdict import verdicts
from edgefl.show.table import Table
from edgefl.store import read

SCENARIO = {
    "name": "state",
    "task": {"dataset": "digits", "clients": 4},
    "model": {"name": "mlp", "hidden": [8]},
    "method": "fedavg",
    "local": {"epochs": 1, "batch_size": 64},
    "fleet": "home-lab",
    "server": {"rounds": 3},
    "evaluate": {"measures": ["class-accuracy"]},
}


class _Stop(Hooks):
    """Copies the run as it is after its first evaluation, and stops it."""

    def __init__(self, target):
        self.target, self.folder = target, None

    def began(self, run):
        self.folder = run.folder

    def evaluated(self, so_far):  # noqa: ARG002 - the callback's own signature
        shutil.copytree(self.folder, self.target)
        raise KeyboardInterrupt


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Runs by their state."""
    folder = tmp_path_factory.mktemp("states")
    with suppress(KeyboardInterrupt):
        edgefl.run(SCENARIO, out=folder / "interrupted", callbacks=_Stop(folder / "killed"))
    edgefl.run(SCENARIO, overrides={"local.optimizer.lr": 1e30}, out=folder / "failed")
    nobody = {
        "model": {"name": "mlp", "hidden": [300_000]},
        "fleet": {"members": [{"device": "raspberry-pi-zero-2w", "link": "ethernet"}]},
    }
    edgefl.run({**SCENARIO, **nobody}, engine="null", out=folder / "nobody")
    edgefl.run(SCENARIO, out=folder / "done")
    return folder


@pytest.mark.parametrize("state", ["interrupted", "killed", "failed", "nobody"])
def test_a_run_that_is_not_done_has_its_page(folders, state):
    found = paged(folders / state)
    assert found.told.runs[0].summary.status == {"nobody": "failed"}.get(state, state)
    assert found.plots["partition"][0]["samples"]
    assert found.plots["memory"]
    # The machine is noted at the end.
    machine = found.sections["provenance"].tables[0].rows[0][3].text
    assert ("cores" in machine) == (state in {"failed", "nobody"})
    assert found.plots["pareto"] == found.plots["published"] == []
    assert paged(folders / state, folders / "done").plots["pareto"] == []


def test_runs_of_one_name_are_told_apart(folders):
    first = paged(folders / "failed", folders / "nobody").sections["verdict"]
    assert [warning.split(":")[0] for warning in first.warnings] == [
        "state, failed, seed 0 failed",
        "state, nobody, seed 0 failed",
    ]
    assert [setting(value, "key") for value in (None, "", [], 8)] == ["not set", "empty", "none", "8"]
    assert setting(2e5, "server.uplink") == "200 kbit/s"


def test_what_did_not_happen_is_said(folders):
    """Each section in its own words, no unknown energy where nobody spent any, and the whole reason."""
    found = paged(folders / "nobody")
    words = {name: found.sections[name].nothing for name in ("costs", "devices", "measures", "curves")}
    assert words == {
        "costs": "No job has ended yet, so nothing was spent.",
        "devices": "No client took part.",
        "measures": "Nothing was evaluated.",
        "curves": "No run has evaluated a model yet.",
    }
    assert [found.plots[one] for one in ("costs", "waste", "devices", "measures", "accuracy")] == [[]] * 5
    reason = found.told.runs[0].summary.reason
    assert found.sections["verdict"].warnings == [f"state failed: {reason}"]
    assert len(reason) > 200
    beside = paged(folders / "nobody", folders / "done").told
    energies = {row.metric.key: row.values for row in beside.figures if row.metric.unit == "J"}
    assert [energies[key][0] for key in ("joules", "waiting_joules")] == [None, None]
    assert energies["waiting_joules"][1].mean > 0


@pytest.mark.usefixtures("unfinished")
def test_energies_and_data_that_nobody_knows_are_said(tmp_path):
    fleet = {"members": [{"device": UNPOWERED, "link": "ethernet"}]}
    result = edgefl.run({**SCENARIO, "fleet": fleet}, engine="null", out=tmp_path / "unpowered")
    found = paged(result.folder)
    assert {one["figure"] for one in found.plots["costs"]} == {"bytes by part"}
    assert found.sections["devices"].nothing.startswith("No energy is known")
    task = {"dataset": "digits", "clients": 4, "samples": 20}
    result = edgefl.run({**SCENARIO, "task": task, "evaluate": {}}, engine="null", out=tmp_path / "run")
    found = paged(result.folder)
    (partition,) = found.plots["partition"]
    assert (partition["client"], partition["samples"]) == ([], [])
    assert partition["notes"] == {"": "clients have numbers of samples and no data."}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    sweep = {"method": ["fedavg", "spherefed"], "seed": [1, 2]}
    model = {"name": "mlp", "hidden": [16]}
    result = rich(tmp_path_factory.mktemp("sections") / "rich", sweep=sweep, model=model)
    assert [run.status for run in result.runs] == ["done"] * 4
    return result


@pytest.fixture(scope="module")
def page(runs):
    return paged(runs.folder)


def read_of(run, section):
    with read(run.folder) as reader:
        return section.read(Read(Run(reader), None, 0, 9))


def test_of_many_clients_some_are_listed(runs, monkeypatch):
    monkeypatch.setattr(partition, "_MOST_CELLS", 30)
    found = read_of(runs.runs[0], partition)
    assert (found["client"], found["left"]) == ([0, 2, 5], 3)
    samples = {row["client"]: row["samples"] for row in runs.runs[0].table("clients")}
    assert [sum(row) for row in found["samples"]] == [samples[client] for client in found["client"]]


QUANTILES = {"value_low": 0.1, "value": 0.5, "value_high": 0.9, "least": 0.0, "largest": 1.0}


def test_measures_are_the_tables(page, runs):
    cells = defaultdict(list)
    for row in runs.runs[0].table("measures"):
        what = ", ".join(filter(None, (row["measure"], row["figure"], row["model"])))
        cells[what, row["client"] is None, row["round"], row["label"]].append(row["value"])
    lines, maps = ([one for one in page.plots[name] if one["run"] == 0] for name in ("measures", "parts"))
    assert lines
    assert maps
    for one in lines:
        what, *_ = one["what"].partition(", over clients")
        for name, share in QUANTILES.items() if one["what"] != what else [("value", 1.0)]:
            for round_, value in zip(one["round"], one[name], strict=True):
                assert value == pytest.approx(
                    np.quantile(cells[what, one["what"] == what, round_, ""], share)
                )
    for one in maps:
        what, _, whose = one["what"].partition(", by ")
        if "over clients" not in whose:
            for label, values in zip(one["label"], one["value"], strict=True):
                for round_, value in zip(one["round"], values, strict=True):
                    assert [value] == cells.get((what, True, round_, label), [None])[-1:]


def test_provenance_is_the_runs_own(page, runs):
    section = page.sections["provenance"]
    for row, head, result in zip(section.tables[0].rows, page.told.runs, runs.runs, strict=True):
        name, event_hash, made, machine = (cell.text for cell in row)
        with read(result.folder) as reader:
            resolved, host = reader.resolved(), reader.host()
        scenario = section.texts[f"Resolved scenario of {name}"]
        assert Document.parse(scenario, "scenario").data == resolved["scenario"]
        assert (event_hash, made) == (head.summary.event_hash, "in one go")
        assert host["libraries"]["numpy"] in machine
        # Where the data lie says more of the user than of the run.
        assert "data_dir" not in machine
    (fleet,) = (text for title, text in section.texts.items() if title.startswith("Fleet of "))
    settings = Document.parse(fleet, "fleet").data
    assert "links" not in settings
    assert settings["carbon"]["embodied"]["hours"] == "busy"
    # Every number has its source: what `edgefl show` prints, and each number of the carbon record.
    found = defaultdict(list)
    for of, *number in section.tables[1].rows:
        found[of.text].append(tuple(cell.text for cell in number))
    for kind, name in [("device", "pixel-6"), ("device", "raspberry-pi-4b"), ("link", "4g")]:
        assert found[f"{kind} {name}"] == describe(kind, name).rows
    assert {"regions.DE", "server.power", "server.pue"} <= {name for name, *_ in found["carbon"]}


def test_pairs_of_clients_are_the_last_versions_matrix(tmp_path):
    scenario = {
        "task": {"dataset": "digits", "clients": 3}, "model": {"name": "mlp", "hidden": [8]},
        "method": "fedavg", "local": {"steps": 2}, "fleet": "home-lab", "server": {"rounds": 2},
        "evaluate": {"measures": [{"name": "linear-cka", "pairs": True, "samples": 20}]},
    }  # fmt: skip
    (run,) = edgefl.run(scenario, engine="loop", out=tmp_path / "run").runs
    cells = {
        (row["client"], row["label"]): row["value"]
        for row in run.table("measures")
        if row["figure"] == "pairs relu1" and row["round"] == 1
    }
    (one,) = (each for each in read_of(run, measures) if "pairs relu1" in each["what"])
    assert (one["along"], one["round"]) == ("client, in round 1", [0, 1, 2])
    assert one["label"] == ["client 0", "client 1", "client 2"]
    found = np.array(one["value"])
    assert np.isnan(np.diagonal(found)).all()
    assert np.array_equal(found, found.T, equal_nan=True)
    assert found[1, 0] == cells[0, "client 1"]


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
    return verdict.section(told, [])


def _only(record, groups):
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


def test_signs_and_single_seeds_are_explained(record):
    shown = first_screen(_won(record, close_seeds=5))
    cell = shown.tables[0].rows[0][1]
    assert (cell.sign, cell.meaning) == ("≈", "best, but not separable")
    assert shown.notes[0].startswith("≈ best, but not separable from another: the 95% interval")
    assert shown.tables[0].rows[0][2].text == "not separable at 5 seeds"

    def notes(runs):
        groups = [replace(group, runs=own) for group, own in zip(record.groups, runs, strict=True)]
        return " ".join(first_screen(replace(_won(record), groups=groups)).notes)

    assert "Each was run with one seed" in notes([[0], [1], [2], [3], [4]])
    assert "2 of 5 were run with one seed" in notes([[0], [1], [2, 3], [2, 3], [2, 3]])
    assert "seed:" not in notes([[0, 1]] * 5)


def test_intervals_and_differences_are_explained(record):
    notes = ["± 95% interval", "against: means of the differences"]
    cells = [["virtual time", "-1 ±2 s\n(not separable at 5 seeds)"]]
    pairs = PairTable(Table(["", "b\nagainst a"], cells), notes[1:])
    shown = first_screen(replace(record, pairs=pairs, signs=[*notes, "to a target: the first"]))
    assert [note for note in shown.notes if note.startswith(("±", "against", "to a"))] == notes
    (table,) = [one for one in shown.tables if one.caption == "Differences over seeds, with 95% intervals"]
    assert table.head == ["figure", "b against a"]
    ((label, cell),) = table.rows
    assert (label.text, cell.text, cell.below) == ("virtual time", "-1 ±2 s", "(not separable at 5 seeds)")


def test_the_sensitivity_tells_whether_the_order_holds(five):
    studied = made(sorted(five.glob("0*"))[-2:], sensitivity=1).told
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
    turned = _won(record, order="depends", depends_on=list(numbers))
    assert first_screen(turned).tables[0].rows[0][2].below == words


def test_what_cannot_be_told_is_said(record, five, tmp_path):
    opened = _won(record, order="open")
    asked = first_screen(replace(opened, dependence=None)).notes
    assert any("edgefl report --sensitivity 1 tells" in note for note in asked)
    one = made([min(five.glob("0*"))], sensitivity=1).told
    assert (one.dependence.found, one.dependence.why) == (None, "fewer than two runs are done")
    told = first_screen(replace(opened, dependence=one.dependence)).notes
    assert any("is not known: fewer than two runs are done." in note for note in told)
    with pytest.raises(UserError, match="factor must be between 1"):
        made([tmp_path / "no-run"], sensitivity=0.5)
