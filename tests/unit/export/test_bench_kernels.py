"""The kernels of ONNX graphs, by hand: products, bytes, free, fused and quantised operators."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import BYTE, SCALE, codes, floats, graph_of, quantise

from edgefl.core.cost import DENSE, DEPTHWISE, ELEMENTWISE
from edgefl.core.errors import UserError
from edgefl.export.kernels import GraphCost


def kernels(graph, dtype=None):
    """The graph's kernels."""
    return GraphCost(graph, dtype).kernels()


@pytest.fixture
def graph(tmp_path):
    """(nodes, weights, input shape) -> the graph."""
    return lambda *arguments, **settings: graph_of(tmp_path / "m.onnx", *arguments, **settings)


def products(found):
    """(class, m, n, k, groups, FLOPs) of the products."""
    return [
        (one.kind, one.m, one.n, one.k, one.groups, one.flops)
        for one in (cost.kernel for cost in found)
        if one.flops
    ]


def test_a_convolution(graph):
    """3x3, 4 to 8 channels, 6x6 padded, batch 2: 2 * 2*36 * 8 * 36 operations; each operand moves once."""
    nodes = [("Conv", ["x", "w", "b"], ["y"], {"pads": [1, 1, 1, 1]})]
    (found,) = kernels(graph(nodes, {"w": floats(8, 4, 3, 3), "b": floats(8)}, ["batch", 4, 6, 6], batch=2))
    assert products([found]) == [(DENSE, 72, 8, 36, 1, 41_472)]
    assert found.kernel.bytes == 4 * (2 * 4 * 36 + 8 * 4 * 9 + 8 + 2 * 8 * 36)
    assert (found.dtype, found.moved_bytes) == ("fp32", found.kernel.bytes)


def test_grouped_convolutions(graph):
    """One input channel per group is depthwise; more are dense."""
    for groups, kind in ((4, DEPTHWISE), (2, DENSE), (1, DENSE)):
        nodes = [("Conv", ["x", "w"], ["y"], {"group": groups})]
        found = kernels(graph(nodes, {"w": floats(4, 4 // groups, 3, 3)}, ["batch", 4, 5, 5]))
        assert products(found) == [
            (kind, 9, 4 // groups, 36 // groups, groups, 2 * 9 * 4 * 36 // groups),
        ]


def test_a_transposed_convolution(graph):
    """As the tracer counts it: 3x3, 16 to 8 channels in 2 groups on 8x8, 147,456 FLOPs per two samples."""
    nodes = [("ConvTranspose", ["x", "w"], ["y"], {"group": 2})]
    found = kernels(graph(nodes, {"w": floats(16, 4, 3, 3)}, ["batch", 16, 8, 8], batch=4))
    assert sum(one.kernel.flops for one in found) == 2 * 147_456


def test_products_of_matrices(graph):
    """Gemm with either layout; MatMul is one product with shared weights, and one per batch without."""
    for transposed, weight in ((1, floats(5, 7)), (0, floats(7, 5))):
        nodes = [("Gemm", ["x", "w"], ["y"], {"transB": transposed})]
        assert products(kernels(graph(nodes, {"w": weight}, ["batch", 7], batch=3))) == [
            (DENSE, 3, 5, 7, 1, 210)
        ]
    shared = graph([("MatMul", ["x", "w"], ["y"])], {"w": floats(7, 5)}, ["batch", 4, 7], batch=3)
    assert products(kernels(shared)) == [(DENSE, 12, 5, 7, 1, 840)]
    own = graph(
        [("Transpose", ["x"], ["t"], {"perm": [0, 2, 1]}), ("MatMul", ["x", "t"], ["y"])],
        {},
        ["batch", 4, 7],
        batch=3,
    )
    assert products(kernels(own)) == [(DENSE, 4, 4, 7, 3, 2 * 3 * 4 * 4 * 7)]


def test_bytes_of_elementwise_work(graph):
    """One-byte pixels become four-byte floats."""
    nodes = [("Cast", ["x"], ["f"], {"to": 1}), ("Sigmoid", ["f"], ["y"])]
    found = kernels(graph(nodes, {}, ["batch", 10], kind=BYTE))
    assert [(one.kernel.kind, one.kernel.bytes) for one in found] == [(ELEMENTWISE, 50), (ELEMENTWISE, 80)]


def test_true_bytes_in_another_type(graph):
    """In fp16 floats halve and pixels do not; devices scale all bytes of a kernel by a half."""
    nodes = [("Cast", ["x"], ["f"], {"to": 1}), ("Sigmoid", ["f"], ["y"])]
    found = kernels(graph(nodes, {}, ["batch", 10], kind=BYTE), "fp16")
    assert [one.moved_bytes for one in found] == [30, 40]
    assert [one.kernel.bytes for one in found] == [60, 80]
    assert {one.dtype for one in found} == {"fp16"}


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
    weights = {
        "w": floats(1),
        "w2": floats(1, 4),
        "axes": np.array([1]),
        "flat": np.array([-1]),
    }
    found = kernels(graph(nodes, weights, ["batch", 4]))
    assert [one.kernel.op for one in found] == ["Add"]


def test_an_activation_belongs_to_the_product_before_it(graph):
    """Unless another operator reads the product's result too."""
    weights = {"w": floats(5, 5)}
    fused = graph([("Gemm", ["x", "w"], ["h"]), ("Relu", ["h"], ["y"])], weights, ["batch", 5])
    assert [(one.kernel.op, one.kernel.bytes) for one in kernels(fused)] == [("Gemm", 4 * (5 + 25 + 5))]
    apart = [("Gemm", ["x", "w"], ["h"]), ("Relu", ["h"], ["r"]), ("Add", ["h", "r"], ["y"])]
    assert [one.kernel.op for one in kernels(graph(apart, weights, ["batch", 5]))] == ["Gemm", "Relu", "Add"]
    shown = [("Gemm", ["x", "w"], ["h"]), ("Relu", ["h"], ["y"])]
    both = graph(shown, weights, ["batch", 5], outputs=("h", "y"))
    assert [one.kernel.op for one in kernels(both)] == ["Gemm", "Relu"]


def test_an_unknown_operator_is_named(graph):
    """A model is never priced in part."""
    found = graph([("Det", ["x"], ["y"])], {}, ["batch", 3, 3])
    with pytest.raises(UserError, match="operator Det"):
        kernels(found)


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


def test_a_quantised_graph_in_another_type(graph):
    """In fp32, quantised values count as floats."""
    found = kernels(graph(QUANTISED, QUANTISED_WEIGHTS, ["batch", 10]), "fp32")
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


def test_batches_that_a_model_does_not_take(graph):
    """A model with a fixed batch takes no other; a dynamic axis beside the batch is an error."""
    with pytest.raises(UserError, match="batches of 1, not of 2"):
        graph([("Relu", ["x"], ["y"])], {}, [1, 4], batch=2)
    with pytest.raises(UserError, match="axis 1 of input 'x' has no fixed size"):
        graph([("Relu", ["x"], ["y"])], {}, ["batch", "length"])
