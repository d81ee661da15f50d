"""Training on a CUDA device gives the CPU's results, up to rounding."""

from __future__ import annotations

import json

import pytest
import torch
from builders import learned

import edgefl

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]

SCENARIO = {
    "task": {"dataset": "digits", "clients": 6, "partition": {"name": "dirichlet", "alpha": 1.0}},
    "model": {"name": "mlp", "hidden": [16]},
    "local": {"epochs": 1, "batch_size": 16, "optimizer": {"name": "sgd", "lr": 0.05}},
    "fleet": "home-lab",
    "server": {"rounds": 2},
}


@pytest.mark.parametrize("engine", ["loop", "vmapped"])
@pytest.mark.parametrize("method", ["fedavg", "spherefed", "fedclassavg"])
def test_a_gpu_gives_the_cpus_results(tmp_path, method, engine):
    """Versions and states agree; events are equal."""
    runs = []
    for device in ("cpu", "cuda:0"):
        settings = {"name": engine, "device": device}
        (run,) = edgefl.run({**SCENARIO, "method": method}, engine=settings, out=tmp_path / device[:3]).runs
        assert run.status == "done", run.reason
        runs.append(run)
    expected, found = map(learned, runs)
    assert found.keys() == expected.keys()
    for key, leaf in expected.items():
        torch.testing.assert_close(found[key], leaf, rtol=1e-3, atol=1e-3)
    assert runs[0].table("events") == runs[1].table("events")


def test_auto_takes_the_gpu(tmp_path, monkeypatch):
    """If there is one, and ``host.json`` says so."""
    monkeypatch.delenv("EDGEFL_ENGINE")
    (run,) = edgefl.run({**SCENARIO, "method": "fedavg"}, engine="auto", out=tmp_path / "run").runs
    host = json.loads((run.folder / "host.json").read_text(encoding="utf-8"))
    assert host["engine"]["device"] == "cuda"
