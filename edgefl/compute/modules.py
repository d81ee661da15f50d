"""fvcore's view of a net: forward counts by module, independent of our own tracer."""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass
from typing import Any

import torch

from edgefl.compute.meta import forward_kernels
from edgefl.core.cost import ELEMENTWISE
from edgefl.protocol import Net

# fvcore's names for convolutions and matrix products; the rest (norms, pooling) is bytes to us.
_PRODUCTS = frozenset({"conv", "linear", "addmm", "matmul", "bmm", "einsum"})


@dataclass(frozen=True)
class Module:
    """One module's forward pass on one sample.

    Attributes:
        module: its dotted name.
        kind: its class's name.
        parameters: how many values it holds.
        flops: of its convolutions and matrix products, two a multiply-add.
    """

    module: str
    kind: str
    parameters: int
    flops: int


def modules(net: Net) -> list[Module]:
    """The modules of a net that do matrix work, by fvcore."""
    module = net.module(net.init(0))
    counted = _counts(net, module)
    return [
        Module(
            name, type(inner).__name__, sum(value.numel() for value in inner.parameters()), 2 * counted[name]
        )
        for name, inner in module.named_modules()
        if name and not list(inner.children()) and counted.get(name)
    ]


def fvcore_flops(net: Net) -> int:
    """A forward pass on one sample by fvcore: convolutions and matrix products, two a multiply-add."""
    return 2 * _counts(net, net.module(net.init(0))).get("", 0)


def traced_flops(net: Net) -> int:
    """The same by our own tracer."""
    return sum(kernel.flops for kernel in forward_kernels(net, 1) if kernel.kind != ELEMENTWISE)


def _counts(net: Net, module: torch.nn.Module) -> dict[str, int]:
    """Multiply-adds by module name; fvcore counts one a multiply-add, forward only."""
    from fvcore.nn import FlopCountAnalysis

    with warnings.catch_warnings():
        # fvcore traces through torch.jit, which torch deprecates; there is no newer fvcore.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", torch.jit.TracerWarning)  # type: ignore[attr-defined]
        analysis = FlopCountAnalysis(module, torch.zeros(1, *net.shape))
        analysis.unsupported_ops_warnings(enabled=False)
        analysis.uncalled_modules_warnings(enabled=False)
        by_module: dict[str, Any] = analysis.by_module_and_operator()
    logging.getLogger("fvcore.nn.jit_analysis").setLevel(logging.WARNING)
    return {
        name: int(sum(count for operator, count in operators.items() if operator in _PRODUCTS))
        for name, operators in by_module.items()
    }
