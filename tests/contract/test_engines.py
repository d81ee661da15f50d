"""Whole runs on digits: stacked clients have the same events and results as clients trained alone."""

from __future__ import annotations

import pytest
import torch
from builders import learned
from nightly import mostly

import edgefl
from edgefl.compute.gradients import Gradients

SCENARIO = {
    "task": {
        "dataset": "digits",
        "clients": 6,
        "partition": {"name": "dirichlet", "alpha": 0.5, "min_samples": 20},
    },
    "model": {"name": "mlp", "hidden": [12]},
    "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9}},
    "fleet": "home-lab",
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
    "two models, heads shared": {"method": "fedclassavg", "model": TWO, "local": {"epochs": 1}},
    "two models, LG-FedAvg": {"method": "lg-fedavg", "model": TWO, "local": {"epochs": 1}},
    "two phases, heads kept": {
        "method": {"name": "fedrep", "head_epochs": 1},
        "local": {"steps": 8, "batch_size": 8},
    },
    "a second model": {"method": "ditto", "local": {"steps": 9, "batch_size": 16}},
    "fine-tuned at the end": {"method": {"name": "fedbabu", "fine_tune": 1}, "local": {"epochs": 1}},
    "two models, nothing shared": {"method": "local", "model": TWO, "local": {"epochs": 1}},
    "control variates, Fisher information": {
        "method": {"name": "fedcurv", "samples": 20, "base": "scaffold"},
        "local": {"steps": 9, "batch_size": 16},
    },
    "control variates of all data": {
        "method": {"name": "scaffold", "option": "I"},
        "model": "spherefed_convnet",
        "local": {"steps": 8, "batch_size": 8},
    },
    "regularised, chilled by work": {
        "method": {"name": "flexchill", "temperature": {"by": "work"}, "base": "feddyn"},
        "local": {"epochs": 1},
    },
    "normalised moves, a server's optimizer": {
        "method": {"name": "fednova", "mu": 0.1, "base": "fedopt"},
        "local": {"epochs": 1},
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
    """What came of every wish to record a step; None is a refusal."""
    found, tape = [], Gradients._tape  # noqa: SLF001

    def watched(self, *given):
        found.append(tape(self, *given))
        return found[-1]

    monkeypatch.setattr(Gradients, "_tape", watched)
    return found


@pytest.mark.parametrize(
    "case",
    mostly(
        CASES,
        (
            "two views, bodies kept",
            "three exchanges",
            "two models, LG-FedAvg",
            "control variates, Fisher information",
            "shifted images, steps",
            "shifted images, Adam",
        ),
    ),
)
def test_engines_run_the_same(tmp_path, case, tapes):
    """Events, prices and clients are equal; weights and losses are, up to rounding; steps are recorded."""
    loop, vmapped = (
        edgefl.run({**SCENARIO, **CASES[case]}, engine=engine, out=tmp_path / engine).runs[0]
        for engine in ("loop", "vmapped")
    )
    assert loop.status == vmapped.status == "done"
    assert None not in tapes
    assert tapes or "epochs" in CASES[case]["local"]
    for table in ("events", "prices", "clients", "payloads"):
        assert vmapped.table(table) == loop.table(table)
    expected, found = learned(loop), learned(vmapped)
    assert found.keys() == expected.keys()
    for key, leaf in expected.items():
        torch.testing.assert_close(
            found[key], leaf, rtol=2e-3, atol=2e-4, msg=lambda text, k=key: f"{k}: {text}"
        )
    for table in ("merges", "evaluations"):
        losses = [
            [row["loss"] for row in run.table(table) if row["loss"] is not None] for run in (loop, vmapped)
        ]
        assert losses[0]
        assert losses[1] == pytest.approx(losses[0], rel=1e-3)


def test_bounds_of_a_group_change_no_event(tmp_path):
    """Groups of two, or of one for lack of memory, give the same as one group."""
    scenario = {**SCENARIO, "method": "fedclassavg", "server": {"rounds": 1}}
    settings = ({}, {"group": 2}, {"memory": "1 B"})
    runs = [
        edgefl.run({**scenario, "engine": {"name": "vmapped", **one}}, out=tmp_path / str(place)).runs[0]
        for place, one in enumerate(settings)
    ]
    expected = learned(runs[0])
    for run in runs[1:]:
        assert run.table("events") == runs[0].table("events")
        for key, leaf in learned(run).items():
            torch.testing.assert_close(leaf, expected[key], rtol=2e-3, atol=2e-4)
