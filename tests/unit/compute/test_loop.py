"""The loop engine: a result must not depend on the machine's core count."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from edgefl.compute.threads import one_thread

# Prints a digest of two jobs' uploads and scalars; wide enough that torch would share the work out.
_SCRIPT = """
import hashlib, sys
import torch
from builders import build_method, build_net
from edgefl.compute import loop
from edgefl.compute.job import Task
from edgefl.core.event import TrainingJob
from edgefl.protocol import Batch, Ctx, flatten

threads = int(sys.argv[1])
if threads:
    torch.set_num_threads(threads)
net = build_net("cnn2", (3, 32, 32), 10)
method = build_method("fedavg", net)
(exchange,) = method.exchanges
ctx = Ctx(0, 0, 0.1, 2, 128, torch.ones(10))

def batches(phase):
    generator = torch.Generator().manual_seed(0)
    for _ in range(2):
        yield Batch(torch.randn(64, 3, 32, 32, generator=generator), torch.arange(64) % 10)

payload = exchange.down(method.server(net.init(0)), 0)
jobs = [TrainingJob(nth, 0, "train", 0, 0, nth, nth, 2) for nth in range(2)]
tasks = [Task(job, exchange.work, payload, None, ctx, batches) for job in jobs]
digest = hashlib.sha256()
for outcome in map(loop.work, tasks):
    for leaf in flatten(outcome.upload).values():
        digest.update(leaf.numpy().tobytes())
    digest.update(repr(sorted(outcome.scalars.items())).encode())
print(digest.hexdigest(), torch.get_num_threads() == (threads or torch.get_num_threads()))
"""


def digest(*, threads: int, omp: int | None) -> str:
    """What a fresh process with so many threads computes."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    if omp is not None:
        environment["OMP_NUM_THREADS"] = str(omp)
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(threads)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found, restored = done.stdout.split()
    assert restored == "True"
    return found


def test_threads_do_not_change_a_bit():
    """One thread by ``set_num_threads`` and three by OMP_NUM_THREADS: the same uploads, bit for bit."""
    assert digest(threads=1, omp=None) == digest(threads=0, omp=3)


@pytest.mark.parametrize("before", [1, 2])
def test_the_number_of_threads_is_restored(before: int):
    """One thread inside; as many as before afterwards, also after an error."""
    outside = torch.get_num_threads()
    torch.set_num_threads(before)

    def fail() -> None:
        with one_thread():
            assert torch.get_num_threads() == 1
            raise RuntimeError("as planned")

    try:
        with pytest.raises(RuntimeError, match="as planned"):
            fail()
        assert torch.get_num_threads() == before
    finally:
        torch.set_num_threads(outside)
