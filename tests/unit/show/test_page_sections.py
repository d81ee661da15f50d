"""What the page is given of costs, memory, data, measures and provenance is what the runs say."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from compared import rich
from paged import paged, rows

import edgefl
from edgefl.analysis.groups import spreads
from edgefl.analysis.run import Run
from edgefl.core.yamls import Document
from edgefl.planning.describe import describe
from edgefl.show.page.records import Read
from edgefl.show.page.sections import measures, partition
from edgefl.store import read


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two methods with two seeds each, with late jobs, batteries, emissions, measures and a target."""
    sweep = {"method": ["fedavg", "spherefed"], "seed": [1, 2]}
    model = {"name": "mlp", "hidden": [16]}
    result = rich(tmp_path_factory.mktemp("sections") / "rich", sweep=sweep, model=model)
    assert [run.status for run in result.runs] == ["done"] * 4
    return result


@pytest.fixture(scope="module")
def page(runs):
    """Their page."""
    return paged(runs.folder)


def read_of(run, section):
    """What a section reads of a run."""
    with read(run.folder) as reader:
        return section.read(Read(Run(reader), None, 0, 9))


def test_parts_of_costs_add_up_to_the_groups(page):
    """Bytes by part and energy by phase to all bytes and joules; jobs by ending and energy by device too."""
    for place, group in enumerate(page.told.groups):
        found = {key: one.mean for key, one in spreads(group.seeds.runs).items()}
        sums = defaultdict(float)
        for plot in ("costs", "waste"):
            for block in page.plots[plot]:
                if block["group"] == place:
                    sums[block["figure"]] += sum(block["amount"])
        (devices,) = (block for block in page.plots["devices"] if block["group"] == place)
        expected = {
            "bytes by part": found["down_bytes"] + found["up_bytes"],
            "energy by phase": found["joules"],
            "client time": found["client_s"],
            "jobs": found["jobs"],
            "energy": found["joules"],
        }
        # Transfers that were broken off are of no part.
        assert {name: sums[name] for name in expected} == pytest.approx(expected, rel=0.2)
        assert {name: sums[name] for name in ("jobs", "energy")} == pytest.approx(
            {name: expected[name] for name in ("jobs", "energy")}
        )
        assert sum(devices["joules"]) == pytest.approx(found["joules"])
        assert devices["device"] == ["pixel-6", "raspberry-pi-4b", "raspberry-pi-zero-2w"]
        assert [one is not None for one in devices["per_day"]] == [True, False, False]


REFUSED = {
    "task": {"dataset": "digits", "clients": 6},
    "model": {"name": "mlp", "hidden": [3000]},
    "method": "fedavg",
    "fleet": {
        "members": [
            {"device": name, "link": "ethernet"} for name in ("stm32f746", "coral-edge-tpu", "laptop-cpu")
        ]
    },
    "server": {"rounds": 1},
}


def test_refused_clients_have_their_needs(tmp_path):
    """Too little memory, or a device that cannot train: as the table of refusals has them."""
    (run,) = edgefl.run(REFUSED, engine="null", out=tmp_path / "run").runs
    refusals = {row["device"]: row for row in run.table("refusals")}
    (block,) = paged(run.folder).plots["memory"]
    found = {
        (device, what): more for device, what, *more in rows(block, "device", "what", "bytes", "clients")
    }
    assert {device for device, what in found if what.startswith("refused")} == set(refusals)
    for device, row in refusals.items():
        assert found[device, "need of train"] == [row["needs_bytes"], 2]
        assert found[device, "limit of the device"] == [row["has_bytes"], 2]
    assert len([reason for reason in block["reason"] if reason]) == 1
    assert block["notes"][""].startswith("Refused: 2 clients (stm32f746, mlp: train)")


def test_partitions_are_shared(page, runs):
    """One for each seed, named by both methods' runs; the counts are those of the store."""
    assert [block["title"] for block in page.plots["partition"]] == [
        "fedavg, seed 1; spherefed, seed 1",
        "fedavg, seed 2; spherefed, seed 2",
    ]
    for block, run in zip(page.plots["partition"], runs.runs, strict=False):
        counts = np.zeros((6, 10), dtype=int)
        for row in run.table("class_counts"):
            counts[row["client"], row["label"]] = row["samples"]
        assert block["samples"] == counts.tolist()
        assert (block["client"], block["left"]) == (list(range(6)), 0)
        assert block["class"] == [str(digit) for digit in range(10)]


def test_of_many_clients_some_are_listed(runs, monkeypatch):
    """At even distances, the first and the last among them; their counts are their own."""
    monkeypatch.setattr(partition, "_MOST_CELLS", 30)
    found = read_of(runs.runs[0], partition)
    assert (found["client"], found["left"]) == ([0, 2, 5], 3)
    samples = {row["client"]: row["samples"] for row in runs.runs[0].table("clients")}
    assert [sum(row) for row in found["samples"]] == [samples[client] for client in found["client"]]


QUANTILES = {"value_low": 0.1, "value": 0.5, "value_high": 0.9, "least": 0.0, "largest": 1.0}


def test_measures_are_the_tables(page, runs):
    """Each class, layer and round; of values of clients their quantiles."""
    cells = defaultdict(list)
    for row in runs.runs[0].table("measures"):
        what = ", ".join(filter(None, (row["measure"], row["figure"], row["model"])))
        cells[what, row["client"] is None, row["round"], row["label"]].append(row["value"])
    lines = [one for one in page.plots["measures"] if one["run"] == 0]
    maps = [one for one in page.plots["parts"] if one["run"] == 0]
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
    """Its settings, assumptions, events and machine."""
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


def test_every_number_has_its_source(page):
    """What `edgefl show` prints of each device and link; each number of the carbon record."""
    found = defaultdict(list)
    for of, *number in page.sections["provenance"].tables[1].rows:
        found[of.text].append(tuple(cell.text for cell in number))
    for kind, name in [("device", "pixel-6"), ("device", "raspberry-pi-4b"), ("link", "4g")]:
        assert found[f"{kind} {name}"] == describe(kind, name).rows
    assert {"regions.DE", "server.power", "server.pue"} <= {name for name, *_ in found["carbon"]}


def test_pairs_of_clients_are_the_last_versions_matrix(tmp_path):
    """A row for each client and a column for each other one, symmetric, without a diagonal."""
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
