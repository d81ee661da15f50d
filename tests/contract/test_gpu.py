"""Training on a CUDA device gives the CPU's results, up to rounding."""

import json

import pytest
import torch
from builders import learned
from small import SKEWED, SMALL, alike

import edgefl

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]

SCENARIO = {
    **SMALL,
    "task": SKEWED,
    "local": {"epochs": 1, "batch_size": 16, "optimizer": {"name": "sgd", "lr": 0.05}},
    "server": {"rounds": 2},
}


@pytest.mark.parametrize("engine", ["loop", "vmapped"])
@pytest.mark.parametrize("method", ["fedavg", "spherefed", "fedclassavg"])
def test_a_gpu_gives_the_cpus_results(tmp_path, method, engine):
    runs = []
    for device in ("cpu", "cuda:0"):
        settings = {"name": engine, "device": device}
        (run,) = edgefl.run({**SCENARIO, "method": method}, engine=settings, out=tmp_path / device[:3]).runs
        assert run.status == "done", run.reason
        runs.append(run)
    alike(learned(runs[1]), learned(runs[0]), 1e-3, 1e-3)
    assert runs[0].table("events") == runs[1].table("events")


def test_auto_takes_the_gpu(tmp_path, monkeypatch):
    monkeypatch.delenv("EDGEFL_ENGINE")
    (run,) = edgefl.run({**SCENARIO, "method": "fedavg"}, engine="auto", out=tmp_path / "run").runs
    host = json.loads((run.folder / "host.json").read_text(encoding="utf-8"))
    assert host["engine"]["device"] == "cuda"
