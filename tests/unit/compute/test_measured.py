"""One client's exchange really done: what the numbers mean, without asking how large or how fast they are."""

from __future__ import annotations

import pytest
import torch

from edgefl.core import catalogue
from edgefl.core.errors import RunError
from edgefl.core.scenario import load
from edgefl.planning.probe import measured_exchange, piece

# A hidden layer of 4 million weights: memory that no allocator's habits can hide.
LARGE = ["sweep=null", "method=fedavg", "model={name: mlp, hidden: [4096, 1024]}", "local.batch_size=8"]
WEIGHTS = 4 * (64 * 4096 + 4096 * 1024)


@pytest.fixture(scope="module")
def draft():
    """FedAvg on an MLP of 18 MB."""
    (found,) = load(catalogue.find("scenarios", "quickstart").path, LARGE)
    return found


@pytest.fixture(scope="module")
def found(draft):
    """A client of 24 samples, whose five epochs are cut to two steps."""
    return measured_exchange(draft.scenario.learning, "train", samples=24, limit=2)


def test_the_work_is_done(found):
    """So many steps as the limit allows, on the CPU."""
    assert (found["steps"], found["device"]) == (2, "cpu")
    assert min(found["wall_s"], found["first_wall_s"], found["cpu_s"]) > 0


def test_memory_holds_what_was_received_and_its_gradients(found):
    """The payload, the trained copy and the gradients are three times the weights; sampling may miss some."""
    for kind in ("rss", "uss"):
        before, after, peak = (found[f"{kind}_{when}_bytes"] for when in ("before", "after", "peak"))
        assert before + WEIGHTS < after <= peak
    assert found["added_bytes"] > 2.5 * WEIGHTS
    assert found["maxrss_added_bytes"] >= 0


def test_without_an_accelerator_there_is_nothing_of_one(found):
    """The CUDA allocator's bytes are absent, not zero."""
    assert (found["cuda_before_bytes"], found["cuda_peak_bytes"]) == (None, None)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_on_an_accelerator_its_allocator_is_asked(draft):
    """Weights, copy and gradients lie there."""
    found = measured_exchange(draft.scenario.learning, "train", samples=24, limit=2, device="cuda:0")
    assert found["cuda_peak_bytes"] - found["cuda_before_bytes"] > 2.5 * WEIGHTS


def test_a_failure_is_told(draft):
    """What the process died of is in the message."""
    with pytest.raises(RunError, match="measuring process failed"):
        measured_exchange(draft.scenario.learning, "no such exchange", samples=24)


def test_every_exchange_of_a_method_can_be_measured():
    """The work of SphereFed's calibration, too, is made of settings alone."""
    drafts = load(catalogue.find("scenarios", "quickstart").path)
    (draft,) = (one for one in drafts if one.scenario.method.name == "spherefed")
    plain = draft.scenario.learning.resolved()
    made = piece({"learning": plain, "exchange": "calibrate", "model": 0, "samples": 24})
    assert (made.exchange.name, made.samples) == ("calibrate", 24)
