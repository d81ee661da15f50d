"""Whole runs on digits: what is equal, what is refused, what a failure leaves, what a user reads."""

import json
import math

import pytest
from commands import run_command
from small import SKEWED, SMALL

import edgefl
from edgefl.analysis.summary import summaries
from edgefl.core import catalogue
from edgefl.runs.dry import dry_run

BASE = {
    **SMALL,
    "task": SKEWED,
    "method": {"name": "fedavg"},
    "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.1}},
    "server": {"participants": 3, "rounds": 2},
    "evaluate": {"target": 0.1},
}


def small(**changes):
    return {**BASE, **changes}


def test_a_dry_run_on_digits_has_the_runs_own_clock(tmp_path):
    """Digits' labels are always available, so none are assumed; those of other data are."""
    path = tmp_path / "small.yaml"
    path.write_text(json.dumps(small()), encoding="utf-8")
    (dry,) = dry_run(str(path))
    run = edgefl.run(small(), out=tmp_path / "run", engine="null").runs[0]
    parts, events = run.summary().bytes_by_part.values(), run.table("events")
    assert sum(part.down + part.up for part in parts) == sum(
        row["down_bytes"] + row["up_bytes"] for row in events
    )
    assert dry.summary.virtual_s == events[-1]["t_s"]
    assert dry.summary.energy.joules == pytest.approx(sum(row["joules"] for row in events))
    assert not any("labels" in note for note in dry.notes)
    (dry,) = dry_run(str(path), ["task.dataset=mnist"])
    assert dry.notes[0] == "mnist: no files, so labels are assumed balanced"


@pytest.mark.nightly
def test_a_failing_run_does_not_stop_the_others(tmp_path, capsys):
    """It is marked failed, with the reason and its figures so far; the exit status is 1."""
    path = tmp_path / "sweep.yaml"
    path.write_text(json.dumps(small(sweep={"local.optimizer.lr": [1e9, 0.1]})), encoding="utf-8")
    status, out, _ = run_command(capsys, "run", path, "--out", tmp_path / "group", "--json")
    assert status == 1
    found = json.loads(out)
    bad, good = found["runs"]
    assert (bad["status"], good["status"]) == ("failed", "done")
    assert "diverged" in bad["reason"]
    assert bad["down_bytes"] > 0
    assert good["accuracy"]["global"]["value"] > 0.1


@pytest.mark.parametrize(
    ("decay", "found"), [(1e9, "weights are not finite"), (0.0, "loss on test data is nan")]
)
def test_divergence_in_the_last_step_is_found(tmp_path, decay, found):
    """One step at an absurd rate: its loss is finite, but the weights after it, or their outputs, are not."""
    optimizer = {"name": "sgd", "lr": 3e38, "weight_decay": decay}
    local = {"steps": 1, "batch_size": 32, "optimizer": optimizer}
    (run,) = edgefl.run(small(local=local), out=tmp_path / "run").runs
    assert run.status == "failed"
    assert found in run.reason


def fleet(tmp_path, **numbers):
    """A fleet of Raspberry Pis and one board of the user's, on EDGEFL_PATH."""
    source = catalogue.find("devices", "raspberry-pi-4b").path.read_text(encoding="utf-8")
    lines = source.splitlines()
    for key, line in numbers.items():
        at = next(place for place, old in enumerate(lines) if old.strip().startswith(f"{key}:"))
        lines[at] = lines[at][: len(lines[at]) - len(lines[at].lstrip())] + f"{key}: {line}"
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "board.yaml").write_text("\n".join(lines), encoding="utf-8")
    members = [{"device": name, "link": "wifi-pi4"} for name in ("board", "raspberry-pi-4b")]
    return {"like": "home-lab", "members": members}


def test_what_does_not_fit_is_refused_with_its_numbers(tmp_path, monkeypatch):
    """A board with 12 kB of memory trains nothing, is named with need and memory; the others go on."""
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    mixed = fleet(
        tmp_path,
        memory="{value: 12 kB, status: assumed, source: a test}",
        reserved_memory="{value: 0 B, status: assumed, source: a test}",
    )
    run = edgefl.run(small(fleet=mixed), out=tmp_path / "run").runs[0]
    refused = run.table("refusals")
    assert len(refused) == 3
    assert all(row["needs_bytes"] > row["has_bytes"] == 12_000 for row in refused)
    assert all(sum(json.loads(row["parts"]).values()) == row["needs_bytes"] for row in refused)
    kinds = {row["client"]: set() for row in refused}
    for event in run.table("events"):
        if event["client"] in kinds:
            kinds[event["client"]].add(event["kind"])
    assert all(found == {"refused"} for found in kinds.values())
    only = {**mixed, "members": mixed["members"][:1]}
    (failed,) = edgefl.run(small(fleet=only), out=tmp_path / "none").runs
    assert failed.status == "failed"
    assert "every client was refused" in failed.reason


def test_energy_is_summed_over_those_whose_energy_is_known(tmp_path, monkeypatch):
    """A board of unknown idle power stays out of the total, which says how many clients it covers."""
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    mixed = fleet(tmp_path, idle="{status: unknown, source: a test}")
    run = edgefl.run(small(fleet=mixed, server={"rounds": 1}), out=tmp_path / "run").runs[0]
    (found,) = summaries([run.folder])
    known = {row["client"] for row in run.table("clients") if row["device"] == "raspberry-pi-4b"}
    joules = [row["joules"] for row in run.table("events") if row["client"] in known]
    assert found.energy[1:] == (3, 6)
    assert math.isclose(found.energy.joules, math.fsum(joules), rel_tol=1e-12)
    last = run.table("evaluations")[-1]
    assert (last["energy_known"], last["energy_clients"]) == (3, 6)
    assert math.isclose(found.energy.joules, last["joules"], rel_tol=1e-12)
    assert set(found.joules_by_phase) == {"receive", "compute", "transmit", "tail", "idle"}
    assert math.isclose(found.energy.joules, math.fsum(found.joules_by_phase.values()), rel_tol=1e-12)
    assert found.target.personal.energy.energy_known == 3
    nobody = {**mixed, "members": mixed["members"][:1]}
    (unknown,) = summaries([edgefl.run(small(fleet=nobody), engine="null", out=tmp_path / "none").folder])
    assert (unknown.energy.joules, unknown.joules_by_phase) == (None, {})
