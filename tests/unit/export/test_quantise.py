"""Smaller models: what stays in float, what is lost, and errors of the libraries."""

import numpy as np
import onnx
import pytest
import torch
from exported import exported, images
from onnx import TensorProto, numpy_helper

from edgefl.export.compact import compare_with_fp32, to_fp16, to_int8
from edgefl.export.graph import ExportError
from edgefl.export.model import ExportForm
from edgefl.export.verify import runner

FORM = ExportForm()


@pytest.fixture(scope="module")
def mlp():
    """A small model under SphereFed, and images."""
    return exported("mlp", "spherefed")[1], images((1, 8, 8))[0]


def test_preprocessing_and_the_sphere_stay_in_float(mlp):
    """Products read dequantised values; pixels are scaled and features normalised in float32."""
    model, x = mlp
    nodes = onnx.load_from_string(to_int8(model, FORM, x, {})).graph.node
    made = {output: node.op_type for node in nodes for output in node.output}
    for node in nodes:
        inputs = {made.get(name) for name in node.input}
        if node.op_type == "Gemm":
            assert "DequantizeLinear" in inputs
        if node.op_type == "Sub":
            assert "DequantizeLinear" not in inputs


def test_sums_of_squares_stay_in_float32(mlp):
    """float16 ends at 65,504, so norms are computed in float32 on every processor."""
    proto = onnx.load_from_string(to_fp16(mlp[0], FORM, {}))
    inferred = onnx.shape_inference.infer_shapes(proto).graph
    types = {one.name: one.type.tensor_type.elem_type for one in inferred.value_info}
    (norm,) = (node for node in inferred.node if node.op_type == "ReduceL2")
    (first, *_) = (node for node in inferred.node if node.op_type == "Gemm")
    assert types[norm.output[0]] == TensorProto.FLOAT
    assert types[first.output[0]] == TensorProto.FLOAT16


def test_the_drop_is_counted_by_hand():
    """A model that is wrong on k of 64 loses k/64; a lower limit refuses it, and so do infinite logits."""
    model, (x, _) = exported("mlp", "fedavg")[1], images((1, 8, 8))

    def with_head(factor):
        proto = onnx.load_from_string(model)
        name = next(node.input[1] for node in reversed(proto.graph.node) if node.op_type == "Gemm")
        (head,) = (tensor for tensor in proto.graph.initializer if tensor.name == name)
        head.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(head) * np.float32(factor), name))
        return proto.SerializeToString()

    labels, other = runner(model, FORM)(x).argmax(axis=1), with_head(-1)
    wrong, labels = int((runner(other, FORM)(x).argmax(axis=1) != labels).sum()), torch.from_numpy(labels)
    found = compare_with_fp32(other, model, FORM, x, labels, max_drop=wrong / 64)
    assert (found.drop, found.agreement, found.fp32_accuracy) == (wrong / 64, 1 - wrong / 64, 1)
    with pytest.raises(ExportError, match=f"accuracy falls by {wrong / 64:.2%}, from 100.00%") as caught:
        compare_with_fp32(other, model, FORM, x, labels, max_drop=wrong / 64 - 0.001)
    assert "--max-drop" in caught.value.hint
    with pytest.raises(ExportError, match="not finite"):
        compare_with_fp32(with_head(np.inf), model, FORM, x, labels, max_drop=1)
