"""One client's exchange done for real: what the figures mean, not how large they are."""

from functools import partial

import pytest

from edgefl.compute.measured import measure
from edgefl.core import catalogue
from edgefl.core.drafts import load
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
    return measure(partial(client_work, draft.scenario.learning.resolved(), "train", 0, 80), 20)


@pytest.mark.nightly
def test_memory_holds_what_was_received_and_its_gradients(found):
    """After as many steps as allowed; trained in place, what was received takes the weights twice."""
    assert found.steps == 20
    assert found.cpu_s > 0
    assert found.added_bytes > 2 * WEIGHTS
