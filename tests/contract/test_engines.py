"""Whole runs on digits: stacked clients have the same events and results as clients trained alone."""

import pytest
from builders import learned
from nightly import sampled
from small import SKEWED, SMALL, alike

import edgefl
from edgefl.compute import gradients

SCENARIO = {
    **SMALL,
    "task": SKEWED,
    "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9}},
    "server": {"rounds": 2, "participants": 4},
    "evaluate": {"models": ["global", "personal"]},
}
TWO = [{"name": "mlp", "hidden": [16]}, {"name": "mlp", "hidden": [12, 16]}]
NORMED = {"name": "spherefed_convnet", "norm": "batch"}
SHIFTED = {**SCENARIO["task"], "augment": {"name": "shift", "pixels": 1}}
ADAM = {"name": "adam", "lr": 0.003, "clip_norm": 1.0}
CASES = {
    "two views, bodies kept": {"method": "fedclassavg", "local": {"steps": 9, "batch_size": 16}},
    # Without a ridge the head is solved for from a matrix that is next to singular: rounding is all it shows.
    "three exchanges": {
        "method": {"name": "spherefed", "ridge": 0.1},
        "model": NORMED,
        "local": {"steps": 8, "batch_size": 8},
    },
    "two models, LG-FedAvg": {"method": "lg-fedavg", "model": TWO, "local": {"epochs": 1}},
    "control variates, Fisher information": {
        "method": {"name": "fedcurv", "samples": 20, "base": "scaffold"},
        "local": {"steps": 9, "batch_size": 16},
    },
    "shifted images, steps": {"method": "fedprox", "task": SHIFTED, "local": {"steps": 20, "batch_size": 24}},
    "shifted images, Adam": {
        "method": "flexchill",
        "task": SHIFTED,
        "local": {"epochs": 2, "optimizer": ADAM},
    },
}


@pytest.fixture
def tapes(monkeypatch):
    """The tapes that were made; None for steps that cannot be recorded."""
    found, record = [], gradients.record

    def watched(*given):
        found.append(None)
        found[-1] = record(*given)
        return found[-1]

    monkeypatch.setattr(gradients, "record", watched)
    monkeypatch.setattr(gradients, "_FREQUENT", 2)
    return found


@sampled(1, "case", CASES)
def test_engines_run_the_same(tmp_path, case, tapes):
    """Events, prices and clients are equal; weights and losses are, up to rounding; steps are recorded."""
    loop, vmapped = (
        edgefl.run({**SCENARIO, **CASES[case]}, engine=engine, out=tmp_path / engine).runs[0]
        for engine in ("loop", "vmapped")
    )
    assert loop.status == vmapped.status == "done"
    assert None not in tapes
    assert tapes
    for table in ("events", "prices", "clients", "payloads"):
        assert vmapped.table(table) == loop.table(table)
    alike(learned(vmapped), learned(loop), 2e-3, 2e-4)
    for table in ("merges", "evaluations"):
        losses = [
            [row["loss"] for row in run.table(table) if row["loss"] is not None] for run in (loop, vmapped)
        ]
        assert losses[0]
        assert losses[1] == pytest.approx(losses[0], rel=1e-3)
