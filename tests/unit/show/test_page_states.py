"""Pages of runs that are not whole: records for what is known, and words for what is not."""

from __future__ import annotations

import shutil
from contextlib import suppress

import pytest
from hooks import Hooks
from paged import compared, paged
from unfinished import UNPOWERED

import edgefl
from edgefl.show.page import build
from edgefl.show.page.cells import setting
from edgefl.show.page.contents import contents

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
    made = tmp_path_factory.mktemp("states")
    with suppress(KeyboardInterrupt):
        edgefl.run(SCENARIO, out=made / "interrupted", callbacks=_Stop(made / "killed"))
    edgefl.run(SCENARIO, overrides={"local.optimizer.lr": 1e30}, out=made / "failed")
    nobody = {
        "model": {"name": "mlp", "hidden": [300_000]},
        "fleet": {"members": [{"device": "raspberry-pi-zero-2w", "link": "ethernet"}]},
    }
    edgefl.run({**SCENARIO, **nobody}, engine="null", out=made / "nobody")
    edgefl.run(SCENARIO, out=made / "done")
    return made


@pytest.mark.parametrize("state", ["interrupted", "killed", "failed", "nobody"])
def test_a_run_that_is_not_done_has_its_page(folders, state):
    """Its own figures so far, as compare has them; nothing stands on a front."""
    page, told = paged(folders / state), compared(folders / state)
    (run,), (costs,) = told["runs"], page["costs"]
    status = {"nobody": "failed"}.get(state, state)
    assert page["runs"][0]["status"] == run["status"] == status
    assert costs["bytes_by_part"] == run["bytes_by_part"]
    assert costs["joules_by_phase"] == run["joules_by_phase"]
    assert page["provenance"][0]["event_hash"] == run["event_hash"]
    assert page["partition"][0]["counts"]
    assert page["memory"]
    assert (page["sweep"]["fronts"], page["published"]) == ([], [])
    both = paged(folders / state, folders / "done")
    assert len(both["runs"]) == 2
    assert both["sweep"]["fronts"] == []


def test_where_nobody_was_admitted(folders):
    """Needs beside limits, no device with energy, and no event but the refusals."""
    page = paged(folders / "nobody")
    (memory,) = page["memory"]
    assert (memory["clients"], memory["refused"], memory["admitted_bytes"]) == (4, 4, None)
    assert memory["peak_bytes"] > memory["limit_bytes"]
    assert (page["costs"][0]["devices"], page["measures"], page["costs"][0]["bytes_by_part"]) == ({}, [], {})
    assert page["costs"][0]["waiting_joules"] is None
    assert page["costs"][0]["endings"]["merged"]["jobs"] == 0


def test_what_did_not_happen_is_said(folders):
    """Each section in its own words, no unknown energy where nobody spent any, and the whole reason."""
    record = build.page([folders / "nobody"])
    sections = {one.id: one for one in contents(record)}
    words = {name: sections[name].nothing for name in ("costs", "devices", "measures", "curves", "partition")}
    assert words == {
        "costs": "No job has ended.",
        "devices": "No client took part.",
        "measures": "Nothing was evaluated.",
        "curves": "Nothing was evaluated.",
        "partition": "",
    }
    (warning,) = sections["verdict"].warnings
    assert warning == f"state failed: {record.runs[0].reason}"
    assert len(warning) > 200
    assert all(cell.text != record.runs[0].reason for row in sections["runs"].tables[0].rows for cell in row)
    beside = build.page([folders / "nobody", folders / "done"])
    energies = {row.metric.key: row.values for row in beside.figures if row.metric.unit == "J"}
    assert [energies[key][0] for key in ("joules", "waiting_joules")] == [None, None]
    assert energies["waiting_joules"][1].mean > 0


def test_runs_of_one_name_are_told_apart(folders):
    """Where it is said which of them is not done; a setting that is empty or that a run lacks has a word."""
    record = build.page([folders / "failed", folders / "nobody"])
    sections = {one.id: one for one in contents(record)}
    assert [warning.split(":")[0] for warning in sections["verdict"].warnings] == [
        "state, failed, seed 0 failed",
        "state, nobody, seed 0 failed",
    ]
    assert [setting(value, "key") for value in (None, "", [], 8)] == ["not set", "empty", "none", "8"]
    assert setting(2e5, "server.uplink") == "200 kbit/s"


def test_a_killed_run_has_no_machine_yet(folders):
    """It is written at the end; its settings and sources are there from the start."""
    killed, done = (paged(folders / state) for state in ("killed", "done"))
    assert killed["provenance"][0]["machine"] == {}
    assert done["provenance"][0]["machine"]["cores"] > 0
    assert killed["provenance"][0]["scenario"] == done["provenance"][0]["scenario"]
    assert killed["fleets"] == done["fleets"]
    assert [len(one["round"]) for one in killed["measures"]] == [1, 1]


@pytest.mark.usefixtures("unfinished")
def test_unknown_energies_are_none(tmp_path):
    """Of a device whose power is unknown; the other's is known, and the page says of how many clients."""
    members = [{"device": name, "link": "ethernet"} for name in (UNPOWERED, "raspberry-pi-4b")]
    result = edgefl.run({**SCENARIO, "fleet": {"members": members}}, engine="null", out=tmp_path / "run")
    page, told = paged(result.folder), compared(result.folder)
    devices = page["costs"][0]["devices"]
    assert "joules" not in devices[UNPOWERED]
    assert devices["raspberry-pi-4b"]["joules"] == told["runs"][0]["joules"]
    assert page["costs"][0]["energy_of"].startswith("2 of 4 clients, all at least ")
    # The null engine evaluates nothing, so no curve says of whom its energy is.
    assert page["axes"]["joules"]["label"] == "energy of all clients"
    alone = {"members": members[:1]}
    result = edgefl.run({**SCENARIO, "fleet": alone}, engine="null", out=tmp_path / "alone")
    (costs,) = paged(result.folder)["costs"]
    assert (costs["joules_by_phase"], costs["waiting_joules"]) == ({}, None)
    assert "joules" not in costs["endings"]["merged"]
    unknown = [one for one in paged(result.folder)["fleets"][0]["numbers"] if one["status"] == "unknown"]
    assert {one["name"] for one in unknown} >= {"power.idle", "power.active"}
    assert {one["value"] for one in unknown} == {"unknown"}


def test_data_that_nobody_knows_is_said(tmp_path):
    """Of runs of numbers of samples alone there are no counts, and the page says why."""
    task = {"dataset": "digits", "clients": 4, "samples": 20}
    result = edgefl.run({**SCENARIO, "task": task, "evaluate": {}}, engine="null", out=tmp_path / "run")
    (partition,) = paged(result.folder)["partition"]
    assert (partition["clients"], partition["counts"]) == ([], [])
    assert partition["why"] == "clients have numbers of samples and no data"
