"""A net's forward pass on one sample, as fvcore counts it and as our own tracer does."""

import logging
import warnings
from collections import Counter
from math import prod
from typing import Any

import torch

from edgefl.compute.steps import forward_pass
from edgefl.core.cost import ELEMENTWISE
from edgefl.core.errors import RunError
from edgefl.protocol import Net

# fvcore's operators that are convolutions and matrix products; we count the rest (norms, pooling) by bytes.
_FVCORE = {"conv": "convolution"} | dict.fromkeys(("linear", "addmm", "matmul", "bmm", "einsum"), "product")
_ATTENTION = "scaled_dot_product_attention"
# The largest difference between the counts, as a share.
_TOLERANCE = 1e-3


def forward_counts(net: Net) -> tuple[int, int]:
    """Operations of convolutions and matrix products, two a multiply-add: fvcore's count, and the traced one.

    Raises:
        RunError: they differ.
    """
    traced = Counter[str]()
    for kernel, count in forward_pass(lambda: net.module(net.init(0)), 1, net.shape):
        if kernel.kind != ELEMENTWISE:
            traced["convolution" if kernel.op == "convolution" else "product"] += count * kernel.flops
    counted = _counted(net)
    for operator in counted | traced:
        if abs(counted[operator] - traced[operator]) > _TOLERANCE * traced[operator]:
            raise RunError(
                f"a forward pass of {net.name} has {traced[operator]:,} operations in the operator "
                f"{operator} as traced, but {counted[operator]:,} by fvcore",
                where=f"model {net.name}",
                hint="one of them miscounts, and its costs may be wrong; compare the operators in "
                "edgefl/compute/kernels.py",
            )
    return counted.total(), traced.total()


def _counted(net: Net) -> Counter[str]:
    """Operations by operator; fvcore counts 1 a multiply-add."""
    from fvcore.nn import FlopCountAnalysis

    with warnings.catch_warnings():
        # fvcore traces through torch.jit, which torch deprecates; there is no newer fvcore.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", torch.jit.TracerWarning)  # type: ignore[attr-defined]
        analysis = FlopCountAnalysis(net.module(net.init(0)), torch.zeros(1, *net.shape))
        analysis.set_op_handle(f"aten::{_ATTENTION}", _attention)
        analysis.unsupported_ops_warnings(enabled=False)
        analysis.uncalled_modules_warnings(enabled=False)
        operators = analysis.by_operator()
    logging.getLogger("fvcore.nn.jit_analysis").setLevel(logging.WARNING)
    found = Counter[str]()
    for name, count in operators.items():
        if name in _FVCORE:
            found[_FVCORE[name]] += 2 * int(count)
    return found


def _attention(inputs: list[Any], _outputs: list[Any]) -> Counter[str]:
    """Multiply-adds of fused attention, which fvcore does not count: queries by keys, and that by values."""
    queries, keys, values = (one.type().sizes() for one in inputs[:3])
    return Counter(bmm=prod(queries[:-1]) * keys[-2] * (queries[-1] + values[-1]))
