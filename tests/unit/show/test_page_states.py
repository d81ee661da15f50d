"""Pages of runs that are not whole: what is known, and words for what is not."""

from __future__ import annotations

import shutil
from contextlib import suppress

import pytest
from hooks import Hooks
from paged import paged
from unfinished import UNPOWERED

import edgefl
from edgefl.show.page.cells import setting

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
    """What it has so far; nothing stands on a front."""
    found = paged(folders / state)
    assert found.told.runs[0].summary.status == {"nobody": "failed"}.get(state, state)
    assert found.plots["partition"][0]["samples"]
    assert found.plots["memory"]
    assert found.plots["pareto"] == found.plots["published"] == []
    both = paged(folders / state, folders / "done")
    assert len(both.told.runs) == 2
    assert both.plots["pareto"] == []


def test_what_did_not_happen_is_said(folders):
    """Each section in its own words, no unknown energy where nobody spent any, and the whole reason."""
    found = paged(folders / "nobody")
    sections = found.sections
    words = {name: sections[name].nothing for name in ("costs", "devices", "measures", "curves", "partition")}
    assert words == {
        "costs": "No job has ended yet, so nothing was spent.",
        "devices": "No client took part.",
        "measures": "Nothing was evaluated.",
        "curves": "No run has evaluated a model yet.",
        "partition": "",
    }
    assert [found.plots[one] for one in ("costs", "waste", "devices", "measures", "accuracy")] == [[]] * 5
    reason = found.told.runs[0].summary.reason
    assert sections["verdict"].warnings == [f"state failed: {reason}"]
    assert len(reason) > 200
    assert all(cell.text != reason for row in sections["runs"].tables[0].rows for cell in row)
    beside = paged(folders / "nobody", folders / "done").told
    energies = {row.metric.key: row.values for row in beside.figures if row.metric.unit == "J"}
    assert [energies[key][0] for key in ("joules", "waiting_joules")] == [None, None]
    assert energies["waiting_joules"][1].mean > 0


def test_runs_of_one_name_are_told_apart(folders):
    """Where it is said which of them is not done; a setting that is empty or that a run lacks has a word."""
    verdict = paged(folders / "failed", folders / "nobody").sections["verdict"]
    assert [warning.split(":")[0] for warning in verdict.warnings] == [
        "state, failed, seed 0 failed",
        "state, nobody, seed 0 failed",
    ]
    assert [setting(value, "key") for value in (None, "", [], 8)] == ["not set", "empty", "none", "8"]
    assert setting(2e5, "server.uplink") == "200 kbit/s"


def test_a_killed_run_has_no_machine_yet(folders):
    """It is written at the end; its settings are there from the start."""
    killed, done = (paged(folders / state).sections["provenance"] for state in ("killed", "done"))
    assert killed.tables[0].rows[0][3].text == "unknown"
    assert "cores" in done.tables[0].rows[0][3].text
    assert list(killed.texts.values()) == list(done.texts.values())


@pytest.mark.usefixtures("unfinished")
def test_unknown_energies_are_none(tmp_path):
    """Of a device whose power is unknown; the other's is known, and the page says of how many clients."""
    members = [{"device": name, "link": "ethernet"} for name in (UNPOWERED, "raspberry-pi-4b")]
    result = edgefl.run({**SCENARIO, "fleet": {"members": members}}, engine="null", out=tmp_path / "run")
    found = paged(result.folder)
    (devices,) = found.plots["devices"]
    known = dict(zip(devices["device"], devices["joules"], strict=True))
    assert known == {UNPOWERED: None, "raspberry-pi-4b": found.told.runs[0].summary.energy.joules}
    (costs,) = (one for one in found.plots["costs"] if one["figure"] == "energy by phase")
    assert "is that of some clients: state 2 of 4 clients, all at least " in costs["notes"][""]
    result = edgefl.run({**SCENARIO, "fleet": {"members": members[:1]}}, engine="null", out=tmp_path / "a")
    found = paged(result.folder)
    assert {one["figure"] for one in found.plots["costs"]} == {"bytes by part"}
    assert found.sections["devices"].nothing.startswith("No energy is known")


def test_data_that_nobody_knows_is_said(tmp_path):
    """Of runs of numbers of samples alone there are no counts, and the page says why."""
    task = {"dataset": "digits", "clients": 4, "samples": 20}
    result = edgefl.run({**SCENARIO, "task": task, "evaluate": {}}, engine="null", out=tmp_path / "run")
    found = paged(result.folder)
    (partition,) = found.plots["partition"]
    assert (partition["client"], partition["samples"]) == ([], [])
    why = "clients have numbers of samples and no data."
    assert partition["notes"] == {"": why}
