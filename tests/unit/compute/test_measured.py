"""One client's exchange done for real: what the figures mean, not how large they are."""

from __future__ import annotations

import pytest

from edgefl.compute.measured import _Client, measure
from edgefl.core import catalogue
from edgefl.core.drafts import load
from edgefl.core.errors import RunError
from edgefl.planning.profile import client_work

# A hidden layer of 4 million weights: more memory than an allocator's behaviour could hide.
LARGE = ["sweep=null", "method=fedavg", "model={name: mlp, hidden: [4096, 1024]}", "local.batch_size=8"]
WEIGHTS = 4 * (64 * 4096 + 4096 * 1024)


@pytest.fixture(scope="module")
def draft():
    """FedAvg on an MLP of 18 MB."""
    (found,) = load(catalogue.find("scenarios", "quickstart").path, LARGE)
    return found


@pytest.fixture(scope="module")
def found(draft):
    """A client of 80 samples, limited to 20 steps of its five epochs: a sample meets the peak."""
    return measure(client_work, draft.scenario.learning.resolved(), "train", 0, 80, limit=20)


def test_memory_holds_what_was_received_and_its_gradients(found):
    """After as many steps as allowed; trained in place, what was received takes the weights twice."""
    assert found.steps == 20
    assert min(found.wall_s, found.cpu_s) > 0
    assert found.rss_before_bytes + WEIGHTS < found.rss_after_bytes <= found.rss_peak_bytes
    assert found.added_bytes > 2 * WEIGHTS


@pytest.mark.usefixtures("preloaded_processes")
def test_a_failure_is_reported(draft):
    """The message has the process's last error."""
    with pytest.raises(RunError, match="measuring process failed"):
        measure(client_work, draft.scenario.learning.resolved(), "no such exchange", 0, 24)


def test_public_samples_come_in_order_pass_after_pass():
    """As in training: each step has the places after those of the step before, and all are predicted."""
    settings = ["method={name: ktpfl, distill_epochs: 2}", "task.public.samples=20", *LARGE[:1], *LARGE[3:]]
    (draft,) = load(catalogue.find("scenarios", "quickstart").path, settings)
    work = client_work(draft.scenario.learning.resolved(), "train", 0, 24)
    client = _Client(work)
    task = client._task(client.sizes(None))  # noqa: SLF001 - what it trains on is nowhere else
    distil, own, predict = ([batch.y.tolist() for batch in task.batches(phase)] for phase in task.fold.phases)
    places = [[*range(8)], [*range(8, 16)], [*range(16, 20)]]
    assert (distil, predict) == (places * 2, places)
    assert max(map(max, own)) < 10
