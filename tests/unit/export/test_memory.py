"""What one call of an ONNX model holds at once, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import SCALE, codes, floats, graph_of, quantise

from edgefl.export.kernels import GraphCost


@pytest.fixture
def graph(tmp_path):
    """(nodes, weights, input shape) -> the graph."""
    return lambda *arguments, **settings: graph_of(tmp_path / "m.onnx", *arguments, **settings)


def test_a_chain_holds_two_results_at_once(graph):
    """10 to 40 to 5: 10 + 40 floats per sample; an activation shares its product's memory."""
    nodes = [("Gemm", ["x", "w"], ["h"]), ("Relu", ["h"], ["r"]), ("Gemm", ["r", "v"], ["y"])]
    found = GraphCost(
        graph(nodes, {"w": floats(10, 40), "v": floats(40, 5)}, ["batch", 10], batch=3)
    ).memory()
    assert found.weights == 4 * (400 + 200)
    assert found.activations == 4 * 3 * (10 + 40)


def test_a_result_that_is_read_late_is_held(graph):
    """The input of a residual block lives until it is added; views take no memory of their own."""
    nodes = [
        ("Gemm", ["x", "w"], ["a"]),
        ("Reshape", ["a", "flat"], ["b"]),
        ("Gemm", ["b", "w"], ["c"]),
        ("Add", ["x", "c"], ["y"]),
    ]
    found = GraphCost(graph(nodes, {"w": floats(8, 8), "flat": np.array([-1, 8])}, ["batch", 8])).memory()
    # x, b and c at the second product; x, c and y at the sum.
    assert found.activations == 4 * 3 * 8


def test_quantised_results_take_a_byte(graph):
    """Results fused to an integer product never exist as floats; the input and the last sum do."""
    nodes = [
        *quantise("x"),
        ("DequantizeLinear", ["w", "scale", "zero"], ["w_dq"]),
        ("Gemm", ["x_dq", "w_dq"], ["h"]),
        *quantise("h"),
        ("Gemm", ["h_dq", "w_dq"], ["g"]),
        *quantise("g"),
        ("Identity", ["g_dq"], ["y"]),
    ]
    found = GraphCost(graph(nodes, {"w": codes(64, 64), **SCALE}, ["batch", 64], batch=2)).memory()
    assert found.weights == 64 * 64 + 4 + 1
    # The input in floats and in bytes, before any product.
    assert found.activations == 2 * 64 * (4 + 1)


def test_another_type_halves_both(graph):
    """In fp16 floats take two bytes."""
    nodes = [("Gemm", ["x", "w"], ["y"])]
    made = graph(nodes, {"w": floats(10, 40)}, ["batch", 10])
    assert [2 * size for size in GraphCost(made, "fp16").memory()] == list(GraphCost(made).memory())
