"""The page's records of costs, devices, memory, data, measures and provenance are what the runs say."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from compared import rich
from paged import compared, means, paged

import edgefl
from edgefl.analysis.settings import dotted
from edgefl.core.yamls import Document
from edgefl.planning.describe import describe
from edgefl.show.page.sections import partition as partitions
from edgefl.show.page.sections.measures import QUANTILES, measures
from edgefl.store import read

STARTS = {"bytes_by_part", "joules_by_phase", "spent"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two methods with two seeds each, with late jobs, batteries, emissions, measures and a target."""
    sweep = {"method": ["fedavg", "spherefed"], "seed": [1, 2]}
    model = {"name": "mlp", "hidden": [16]}
    result = rich(tmp_path_factory.mktemp("sections") / "rich", sweep=sweep, model=model)
    assert [run.status for run in result.runs] == ["done"] * 4
    return result


@pytest.fixture(scope="module")
def told(runs):
    """What compare says of them."""
    return compared(runs.folder)


@pytest.fixture(scope="module")
def page(runs):
    """Their page."""
    return paged(runs.folder)


@pytest.fixture(scope="module")
def alone(runs):
    """The page of one of them, and what compare says of it."""
    return paged(runs.runs[0].folder), compared(runs.runs[0].folder)


@pytest.fixture(params=["groups", "alone"])
def both(request, page, told, alone):
    """(a page, what compare says): of seeds together, and of a single run."""
    return (page, told) if request.param == "groups" else alone


def test_costs_and_devices_are_those_of_compare(both):
    """Every number of every group: parts, phases, waiting, endings, and what each device's clients took."""
    page, told = both
    assert [one["group"] for one in page["costs"]] == list(range(len(page["groups"])))
    for one, group in zip(page["costs"], page["groups"], strict=True):
        found = means(told, group)
        assert (one["waiting_joules"], one["energy_of"]) == (found["waiting_joules"], "")
        own = dotted({"bytes_by_part": one["bytes_by_part"], "joules_by_phase": one["joules_by_phase"]})
        own |= dotted({"spent": one["endings"]})
        assert own == {key: found[key] for key in found if key.split(".")[0] in STARTS}
        assert set(one["endings"]) == {"merged", "late", "lost", "cut"}
        assert one["endings"]["late"]["jobs"] > 0
        assert list(one["devices"]) == ["pixel-6", "raspberry-pi-4b", "raspberry-pi-zero-2w"]
        for device, use in one["devices"].items():
            for key, value in use.items():
                assert value == found.get(f"devices.{device}.{key}", found.get(f"batteries.{device}.{key}"))
            assert ("per_day" in use) == (device == "pixel-6")
        energies = [use["joules"] for use in one["devices"].values()]
        assert sum(energies) == pytest.approx(found["joules"], rel=1e-12)


def test_settings_figures_and_fronts_of_groups(page, told, alone):
    """The settings in which they differ, what a front is made of, and none of a run alone."""
    methods = [one["settings"]["method.name"] for one in page["groups"]]
    assert methods == ["fedavg", "spherefed"]
    figures = page["sweep"]["figures"]
    assert {"virtual_s", "bytes", "joules", "accuracy.global.value", "accuracy.personal.value"} <= set(
        figures
    )
    for key, figure in figures.items():
        assert figure["values"] == pytest.approx([means(told, group)[key] for group in page["groups"]])
    fronts = {(one["accuracy"], one["cost"]) for one in page["sweep"]["fronts"]}
    assert ("accuracy.personal.value", "joules") in fronts
    assert alone[0]["sweep"] == {"figures": {}, "fronts": []}


def test_memory_is_the_plans(page, told, runs):
    """The largest need of a run is that of compare, and each client is in one row of each exchange."""
    for place, run in enumerate(told["runs"]):
        own = [one for one in page["memory"] if one["run"] == place]
        assert max(one["admitted_bytes"] for one in own) == run["peak_bytes"]
        clients = defaultdict(int)
        for one in own:
            clients[one["exchange"]] += one["clients"]
        names = [row["exchange"] for row in runs.runs[place].table("exchanges")]
        assert dict(clients) == dict.fromkeys(names, run["clients"])
    assert {one["limit_bytes"] for one in page["memory"] if one["device"] == "pixel-6"} == {8 * 2**30 // 2}


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
    found = {one["device"]: one for one in paged(run.folder)["memory"]}
    assert set(found) - set(refusals) == {"laptop-cpu"}
    for device, row in refusals.items():
        one = found[device]
        assert (one["clients"], one["refused"], one["admitted_bytes"]) == (2, 2, None)
        assert (one["peak_bytes"], one["limit_bytes"]) == (row["needs_bytes"], row["has_bytes"])
        assert one["reason"] == row["reason"]
    assert found["stm32f746"]["peak_bytes"] > found["stm32f746"]["limit_bytes"]
    assert found["coral-edge-tpu"]["reason"]
    assert (found["laptop-cpu"]["refused"], found["laptop-cpu"]["reason"]) == (0, "")


def test_partitions_are_shared(page, runs):
    """One for each seed, named by both methods' runs; the counts are those of the store."""
    assert [one["runs"] for one in page["partition"]] == [[0, 2], [1, 3]]
    for one in page["partition"]:
        for run in one["runs"]:
            counts = np.zeros((6, 10), dtype=int)
            for row in runs.runs[run].table("class_counts"):
                counts[row["client"], row["label"]] = row["samples"]
            assert one["counts"] == counts.tolist()
        assert (one["clients"], one["omitted"], one["why"]) == (list(range(6)), 0, "")
        assert one["classes"] == [str(digit) for digit in range(10)]


def test_of_many_clients_some_are_listed(runs, monkeypatch):
    """At even distances, the first and the last among them; their counts are their own."""
    monkeypatch.setattr(partitions, "_MOST_CELLS", 30)
    with read(runs.runs[0].folder) as reader:
        found = partitions.partition(reader, 0)
    assert (found.clients, found.omitted) == ([0, 2, 5], 3)
    samples = {row["client"]: row["samples"] for row in runs.runs[0].table("clients")}
    assert [sum(row) for row in found.counts] == [samples[client] for client in found.clients]


def test_measures_end_with_those_of_compare(both):
    """Every figure of all clients together, and no other."""
    page, told = both
    for place, run in enumerate(told["runs"]):
        ours = defaultdict(dict)
        for one in page["measures"]:
            if one["run"] == place and one["quantile"] is None and one["labels"][0] == "":
                ours[one["measure"]][f"{one['model']} {one['figure']}".strip()] = one["values"][-1][0]
                assert one["round"][-1] == run["measures"][one["measure"]]["round"]
                assert one["unit"] == run["measures"][one["measure"]]["unit"]
        assert ours == {name: one["figures"] for name, one in run["measures"].items()}


def test_measures_are_the_tables(page, runs):
    """Each class, layer and round; of values of clients their quantiles."""
    cells = defaultdict(list)
    for row in runs.runs[0].table("measures"):
        shared = row["client"] is None
        key = row["measure"], row["figure"], row["model"], shared, row["version"], row["label"]
        cells[key].append(row["value"])
    seen = set()
    for one in page["measures"]:
        if one["run"] == 0:
            shared = one["quantile"] is None
            for version, values in zip(one["version"], one["values"], strict=True):
                for label, value in zip(one["labels"], values, strict=True):
                    key = one["measure"], one["figure"], one["model"], shared, version, label
                    share = 1.0 if shared else one["quantile"]
                    expected = float(np.quantile(cells[key], share)) if key in cells else None
                    assert value == expected
                    seen.add(key)
    assert seen >= set(cells)
    assert {one["quantile"] for one in page["measures"]} == {None, *QUANTILES}
    assert {len(one["labels"]) for one in page["measures"]} >= {1, 11}


def test_how_a_run_was_made_is_told(runs, monkeypatch):
    """Where it was resumed, with what was different from then on; and from what it was replayed."""
    from edgefl.show.page.sections import provenance

    with read(runs.runs[0].folder) as reader:
        changed = {"version": 4, "differences": ["torch: 1 then, 2 now", "edgefl's core has changed since"]}
        monkeypatch.setitem(reader.meta, "resumed", [{"version": 2, "differences": []}, changed])
        assert provenance.provenance(reader, 0).made == (
            "resumed at version 2; "
            "resumed at version 4: torch: 1 then, 2 now; edgefl's core has changed since"
        )
        monkeypatch.setitem(reader.meta, "replayed", {"name": "first", "run_id": "12ab"})
        assert provenance.provenance(reader, 0).made == "replayed from first (12ab)"


def test_provenance_is_the_runs_own(page, told, runs):
    """Its settings, assumptions, events and machine."""
    for one, run, result in zip(page["provenance"], told["runs"], runs.runs, strict=True):
        with read(result.folder) as reader:
            resolved, host = reader.resolved(), reader.host()
        assert Document.parse(one["scenario"], "scenario").data == resolved["scenario"]
        assert (one["run_id"], one["event_hash"]) == (run["run_id"], run["event_hash"])
        assert one["assumed"] == run["assumed"]
        assert one["machine"]["libraries"] == host["libraries"]
        assert one["machine"]["engine"]["name"] == "loop"
        # Where the data lie says more of the user than of the run.
        assert "data_dir" not in one["machine"]
        assert one["made"] == "in one go"
    (fleet,) = page["fleets"]
    assert fleet["runs"] == [0, 1, 2, 3]
    settings = Document.parse(fleet["fleet"], "fleet").data
    assert "links" not in settings
    assert settings["carbon"]["embodied"]["hours"] == "busy"
    assert [one["device"] for one in settings["members"]] == [
        "pixel-6",
        "raspberry-pi-4b",
        "raspberry-pi-zero-2w",
    ]


def test_every_number_has_its_source(page):
    """What `edgefl show` prints of each device and link; each number of the carbon record."""
    (fleet,) = page["fleets"]
    rows = defaultdict(list)
    for one in fleet["numbers"]:
        rows[one["of"]].append((one["name"], one["value"], one["status"], one["source"]))
    for kind, name in [("device", "pixel-6"), ("device", "raspberry-pi-4b"), ("link", "4g")]:
        assert rows[f"{kind} {name}"] == describe(kind, name).rows
    assert {"regions.DE", "server.power", "server.pue"} <= {name for name, *_ in rows["carbon"]}
    assert all(one["source"] and one["value"] for one in fleet["numbers"])


def test_long_settings_are_cut(page, monkeypatch, runs):
    """A fleet may hold a trace of millions of rows; the page says how much is left out."""
    from edgefl.show.page.sections import provenance

    whole = page["provenance"][0]["scenario"]
    monkeypatch.setattr(provenance, "_MOST_CHARACTERS", 100)
    with read(runs.runs[0].folder) as reader:
        cut = provenance.provenance(reader, 0).scenario
    kept, last = cut.rstrip("\n").rsplit("\n", 1)
    assert whole.startswith(kept + "\n")
    assert last == f"# {len(whole) - len(kept):,} more characters are in plan.yaml."


def test_without_measures_there_are_none(tmp_path):
    """A run that asks for none has no series."""
    (run,) = edgefl.run(REFUSED, engine="null", out=tmp_path / "run").runs
    with read(run.folder) as reader:
        assert measures(reader, 0) == []


def test_pairs_of_clients_are_the_last_versions_matrix(tmp_path):
    """A row for each client and a column for each other one, symmetric, without a diagonal."""
    scenario = {
        "task": {"dataset": "digits", "clients": 3}, "model": {"name": "mlp", "hidden": [8]},
        "method": "fedavg", "local": {"steps": 2}, "fleet": "home-lab", "server": {"rounds": 2},
        "evaluate": {"measures": [{"name": "linear-cka", "pairs": True, "samples": 20}]},
    }  # fmt: skip
    (run,) = edgefl.run(scenario, engine="loop", out=tmp_path / "run").runs
    rows = {
        (row["client"], row["label"]): row["value"]
        for row in run.table("measures")
        if row["figure"] == "pairs relu1" and row["round"] == 1
    }
    with read(run.folder) as reader:
        (one,) = (each for each in measures(reader, 0) if each.figure == "pairs relu1")
    assert (one.along, one.round, one.quantile) == ("client, in round 1", [0, 1, 2], None)
    assert one.labels == ["client 0", "client 1", "client 2"]
    assert [[rows.get((a, f"client {b}")) for b in range(3)] for a in range(3)] == one.values
    assert [one.values[a][a] for a in range(3)] == [None] * 3
    assert one.values[0][1] == one.values[1][0] is not None
