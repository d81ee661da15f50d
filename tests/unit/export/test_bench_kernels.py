"""The kernels of ONNX graphs and what a call holds at once, by hand; tests/oracles has the products."""

import numpy as np
import pytest
from graphs import SCALE, codes, floats, graph_of, quantise

from edgefl.core.errors import UserError
from edgefl.export.kernels import GraphCost


def kernels(graph, dtype=None):
    return GraphCost(graph, dtype).kernels()


@pytest.fixture
def graph(tmp_path):
    return lambda *arguments, **settings: graph_of(tmp_path / "m.onnx", *arguments, **settings)


def products(graph):
    """(class, m, n, k, groups, FLOPs) of the products."""
    found = [cost.kernel for cost in kernels(graph)]
    return [(one.kind, one.m, one.n, one.k, one.groups, one.flops) for one in found if one.flops]


def test_shapes_and_constants_are_free(graph):
    """Views cost nothing, nor does what follows from shapes and weights alone."""
    nodes = [
        ("Shape", ["x"], ["s"]),
        ("Expand", ["w", "s"], ["e"]),
        ("ReduceL2", ["w2", "axes"], ["norm"]),
        ("Div", ["e", "norm"], ["scaled"]),
        ("Add", ["x", "scaled"], ["sum"]),
        ("Reshape", ["sum", "flat"], ["y"]),
    ]
    weights = {"w": floats(1), "w2": floats(1, 4), "axes": np.array([1]), "flat": np.array([-1])}
    found = kernels(graph(nodes, weights, ["batch", 4]))
    assert [one.kernel.op for one in found] == ["Add"]


def test_an_activation_belongs_to_the_product_before_it(graph):
    weights = {"w": floats(5, 5)}
    fused = graph([("Gemm", ["x", "w"], ["h"]), ("Relu", ["h"], ["y"])], weights, ["batch", 5])
    assert [(one.kernel.op, one.kernel.bytes) for one in kernels(fused)] == [("Gemm", 4 * (5 + 25 + 5))]
    apart = [("Gemm", ["x", "w"], ["h"]), ("Relu", ["h"], ["r"]), ("Add", ["h", "r"], ["y"])]
    assert [one.kernel.op for one in kernels(graph(apart, weights, ["batch", 5]))] == ["Gemm", "Relu", "Add"]
    shown = [("Gemm", ["x", "w"], ["h"]), ("Relu", ["h"], ["y"])]
    both = graph(shown, weights, ["batch", 5], outputs=("h", "y"))
    assert [one.kernel.op for one in kernels(both)] == ["Gemm", "Relu"]


QUANTISED = [
    *quantise("x"),
    ("DequantizeLinear", ["w", "scale", "zero"], ["w_dq"]),
    ("DequantizeLinear", ["b", "scale", "zero32"], ["b_dq"]),
    ("Gemm", ["x_dq", "w_dq", "b_dq"], ["h"], {"transB": 1}),
    ("Relu", ["h"], ["r"]),
    *quantise("r"),
    ("DequantizeLinear", ["w2", "scale", "zero"], ["w2_dq"]),
    ("Gemm", ["r_dq", "w2_dq"], ["y"], {"transB": 1}),
]
QUANTISED_WEIGHTS = {
    **SCALE,
    "zero32": np.int32(0),
    "w": codes(8, 10),
    "b": np.zeros(8, np.int32),
    "w2": codes(4, 8),
}


def test_a_quantised_graph(graph):
    """Products move one byte per value and include the quantisation around them; logits stay floats."""
    made = graph(QUANTISED, QUANTISED_WEIGHTS, ["batch", 10])
    found = kernels(made)
    assert GraphCost(made).quantised
    # The input is quantised by itself: 10 floats to 10 bytes, with scale and zero point.
    assert [(one.kernel.op, one.dtype, one.moved_bytes) for one in found] == [
        ("QuantizeLinear", "fp32", 40 + 4 + 1 + 10),
        ("Gemm", "int8", 10 + 80 + 4 * 8 + 8),
        ("Gemm", "int8", 8 + 32 + 4 * 4),
    ]
    assert [one.kernel.bytes for one in found] == [55, 4 * 130, 4 * 56]
    # In fp32, quantised values count as floats.
    found = kernels(made, "fp32")
    assert {one.dtype for one in found} == {"fp32"}
    assert found[1].moved_bytes == 4 * (10 + 80 + 8) + 4 * 8


def test_operators_without_an_integer_form_run_in_floats(graph):
    """Pooling runs on quantised values; an exponential is dequantised, and its result quantised again."""
    for op, expected in (
        ("GlobalAveragePool", ["QuantizeLinear", "GlobalAveragePool", "DequantizeLinear"]),
        ("Exp", ["QuantizeLinear", "DequantizeLinear", "Exp", "QuantizeLinear", "DequantizeLinear"]),
    ):
        nodes = [*quantise("x"), (op, ["x_dq"], ["h"]), *quantise("h"), ("Identity", ["h_dq"], ["y"])]
        made = graph(nodes, SCALE, ["batch", 2, 4, 4])
        assert [one.kernel.op for one in kernels(made)] == expected
        assert not GraphCost(made).quantised


def test_what_is_not_priced(graph):
    """An unknown operator is named; a fixed batch takes no other; other axes are fixed."""
    with pytest.raises(UserError, match="operator Det"):
        kernels(graph([("Det", ["x"], ["y"])], {}, ["batch", 3, 3]))
    with pytest.raises(UserError, match="batches of 1, not of 2"):
        graph([("Relu", ["x"], ["y"])], {}, [1, 4], batch=2)
    with pytest.raises(UserError, match="axis 1 of input 'x' has no fixed size"):
        graph([("Relu", ["x"], ["y"])], {}, ["batch", "length"])


def test_memory_of_a_chain_is_that_of_two_results(graph):
    """10 to 40 to 5: 10 + 40 floats per sample; an activation shares its product's memory; fp16 halves."""
    nodes = [("Gemm", ["x", "w"], ["h"]), ("Relu", ["h"], ["r"]), ("Gemm", ["r", "v"], ["y"])]
    made = graph(nodes, {"w": floats(10, 40), "v": floats(40, 5)}, ["batch", 10], batch=3)
    assert GraphCost(made).memory() == (4 * (400 + 200), 4 * 3 * (10 + 40))
    assert GraphCost(made, "fp16").memory() == (2 * (400 + 200), 2 * 3 * (10 + 40))


def test_a_result_that_is_read_late_is_held(graph):
    """The input of a residual block lives until it is added; views take no memory of their own."""
    nodes = [
        ("Gemm", ["x", "w"], ["a"]),
        ("Reshape", ["a", "flat"], ["b"]),
        ("Gemm", ["b", "w"], ["c"]),
        ("Add", ["x", "c"], ["y"]),
    ]
    found = GraphCost(graph(nodes, {"w": floats(8, 8), "flat": np.array([-1, 8])}, ["batch", 8])).memory()
    assert found.activations == 4 * 3 * 8  # x, b and c at the second product; x, c and y at the sum


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
    # The input in floats and in bytes, before any product.
    assert found == (64 * 64 + 4 + 1, 2 * 64 * (4 + 1))
