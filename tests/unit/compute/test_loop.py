"""The loop engine: a result must not depend on the machine's core count."""

import pytest
import torch
from builders import build_method, build_net

from edgefl.compute import loop
from edgefl.compute.job import Task
from edgefl.compute.process import one_thread
from edgefl.core.event import TrainingJob
from edgefl.protocol import Batch, Ctx, flatten


@pytest.fixture
def threads():
    """Sets torch's number of threads, which is restored."""
    outside = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(outside)


def batches(_):
    """Wide enough that torch would share the work out."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(2):
        yield Batch(torch.randn(64, 3, 32, 32, generator=generator), torch.arange(64) % 10)


def test_threads_do_not_change_a_bit(threads):
    """With one thread and with three: the same upload and scalars, and the number is as before."""
    net = build_net("cnn2", (3, 32, 32), 10)
    method = build_method("fedavg", net)
    (exchange,) = method.exchanges
    payload = exchange.down(method.server(net.init(0)), 0)
    job = TrainingJob(0, 0, "train", 0, 0, 0, 0, 2)
    found = []
    for count in (1, 3):
        threads(count)
        ctx = Ctx(0, 0, 0.1, 2, 128, torch.ones(10))
        outcome = loop.work(Task(job, exchange.work, payload, None, ctx, batches))
        assert torch.get_num_threads() == count
        found.append((outcome.scalars, {key: one.tolist() for key, one in flatten(outcome.upload).items()}))
    assert found[0] == found[1]


def test_the_number_of_threads_is_restored_after_an_error(threads):
    def fail() -> None:
        with one_thread():
            assert torch.get_num_threads() == 1
            raise RuntimeError("as planned")

    threads(2)
    with pytest.raises(RuntimeError, match="as planned"):
        fail()
    assert torch.get_num_threads() == 2
