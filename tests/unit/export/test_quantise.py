"""Repairs to float16 models, what stays in float, and errors of the libraries."""

from __future__ import annotations

import logging
import sys

import onnx
import pytest
from exported import exported, images
from onnx import TensorProto

from edgefl.export import quantise
from edgefl.export.graph import ExportError
from edgefl.export.model import ExportForm

FORM = ExportForm()


@pytest.fixture(scope="module")
def mlp():
    """A small model under SphereFed, and images."""
    return exported("mlp", "spherefed")[1], images((1, 8, 8))[0]


def test_preprocessing_and_the_sphere_stay_in_float(mlp):
    """Products read dequantised values; pixels are scaled and features normalised in float32."""
    model, x = mlp
    nodes = onnx.load_from_string(quantise.to_int8(model, FORM, x, {})).graph.node
    made = {output: node.op_type for node in nodes for output in node.output}
    for node in nodes:
        inputs = {made.get(name) for name in node.input}
        if node.op_type == "Gemm":
            assert "DequantizeLinear" in inputs
        if node.op_type == "Sub":
            assert "DequantizeLinear" not in inputs


def test_sums_of_squares_stay_in_float32(mlp):
    """float16 ends at 65,504, so norms are computed in float32 on every processor."""
    proto = onnx.load_from_string(quantise.to_fp16(mlp[0], FORM, {}))
    inferred = onnx.shape_inference.infer_shapes(proto).graph
    types = {one.name: one.type.tensor_type.elem_type for one in inferred.value_info}
    (norm,) = (node for node in inferred.node if node.op_type == "ReduceL2")
    (first, *_) = (node for node in inferred.node if node.op_type == "Gemm")
    assert types[norm.output[0]] == TensorProto.FLOAT
    assert types[first.output[0]] == TensorProto.FLOAT16


def test_a_librarys_failure_is_one_error():
    with pytest.raises(ExportError, match="ONNX Runtime cannot"):
        quantise.to_int8(b"no model", FORM, images((1, 8, 8))[0], {})
    with pytest.raises(ExportError, match="ONNX Runtime cannot"):
        quantise.to_fp16(b"no model", FORM, {})


def test_the_tools_leave_nothing_behind(mlp, capfd):
    """No handler on the root logger, nothing on sys.path, nothing printed; the same images, the same file."""
    model, x = mlp
    before = list(sys.path), list(logging.getLogger().handlers)
    assert quantise.to_int8(model, FORM, x, {}) == quantise.to_int8(model, FORM, x, {})
    quantise.to_fp16(model, FORM, {})
    assert (list(sys.path), list(logging.getLogger().handlers)) == before
    assert capfd.readouterr() == ("", "")
