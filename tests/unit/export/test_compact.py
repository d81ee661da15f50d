"""How a smaller model is compared with the float32 one, and when it is refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from exported import exported, images
from onnx import numpy_helper

from edgefl.export.compact import compare_with_fp32
from edgefl.export.graph import ExportError
from edgefl.export.model import ExportForm
from edgefl.export.verify import BATCHES, compare, runner

FORM = ExportForm()
X, _ = images((1, 8, 8))


@pytest.fixture(scope="module")
def model():
    return exported("mlp", "fedavg")[1]


@pytest.fixture(scope="module")
def labels(model):
    """Labels for which the model is always right."""
    return torch.from_numpy(runner(model, FORM)(X).argmax(axis=1))


def with_head(model, change):
    """The model with another last matrix."""
    proto = onnx.load_from_string(model)
    name = next(node.input[1] for node in reversed(proto.graph.node) if node.op_type == "Gemm")
    for tensor in proto.graph.initializer:
        if tensor.name == name:
            value = change(numpy_helper.to_array(tensor).copy())
            tensor.CopyFrom(numpy_helper.from_array(value.astype(np.float32), name))
    return proto.SerializeToString()


def test_the_drop_is_counted_by_hand(model, labels):
    """A model that is wrong on k of 64 loses k/64; a lower limit refuses it."""
    other = with_head(model, lambda value: -value)
    wrong = int((runner(other, FORM)(X).argmax(axis=1) != labels.numpy()).sum())
    assert wrong > 0
    found = compare_with_fp32(other, model, FORM, X, labels, max_drop=wrong / 64)
    assert (found.drop, found.agreement, found.fp32_accuracy) == (wrong / 64, 1 - wrong / 64, 1)
    assert (found.samples, found.fp32_bytes) == (64, len(model))
    with pytest.raises(ExportError, match=f"accuracy falls by {wrong / 64:.2%}, from 100.00%") as caught:
        compare_with_fp32(other, model, FORM, X, labels, max_drop=wrong / 64 - 0.001)
    assert "--max-drop" in caught.value.hint


def test_logits_that_are_not_finite_are_refused(model, labels):
    with pytest.raises(ExportError, match="not finite"):
        compare_with_fp32(with_head(model, lambda value: value * np.inf), model, FORM, X, labels, max_drop=1)


@pytest.mark.parametrize("count", [1, 64])
def test_few_samples_meet_every_batch_size(count):
    """They repeat in the larger batches, and count once."""
    sizes = []

    def run(chunk):
        sizes.append(len(chunk))
        return np.zeros((len(chunk), 10), np.float32)

    found = compare(run, run, X[:count], torch.zeros(count, dtype=torch.int64))
    assert set(BATCHES) <= set(sizes)
    assert (found.samples, found.accuracy) == (count, 1)
