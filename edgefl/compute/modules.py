"""A net layer by layer: forward counts by fvcore and by our own tracer."""

from __future__ import annotations

import logging
import warnings
from functools import partial
from typing import Any

import torch
from torch import nn

from edgefl.compute.meta import forward_kernels
from edgefl.compute.tracer import Tracer
from edgefl.core.cost import ELEMENTWISE, Kernel
from edgefl.core.layers import Layer, ModelLayers
from edgefl.protocol import Net

# fvcore's names for convolutions and matrix products; we count the rest (norms, pooling) by bytes.
_PRODUCTS = frozenset({"conv", "linear", "addmm", "matmul", "bmm", "einsum"})


def layers(net: Net) -> ModelLayers:
    """A net module by module, with both counts of the whole."""
    module = net.module(net.init(0))
    counted = _counts(net, module)
    modules = [
        Layer(
            module=name,
            kind=type(inner).__name__,
            parameters=sum(value.numel() for value in inner.parameters()),
            fvcore_flops=2 * counted.get(name, 0),
            flops=_flops(kernels),
            kernels=len(kernels),
            bytes=sum(kernel.bytes for kernel in kernels),
        )
        for name, inner, kernels in _traced(net)
    ]
    return ModelLayers(net.name, modules, 2 * counted.get("", 0), traced_flops(net))


def _traced(net: Net) -> list[tuple[str, nn.Module, list[Kernel]]]:
    """The innermost modules that start any operator, with their kernels on one sample."""
    found: dict[str, list[Kernel]] = {}
    begun: dict[str, int] = {}
    with torch.device("meta"), torch.no_grad():
        module, x = net.module(net.init(0)), torch.empty(1, *net.shape)
        tracer = Tracer()

        def begin(name: str, *_: Any) -> None:
            begun[name] = len(tracer.kernels)

        def end(name: str, *_: Any) -> None:
            found.setdefault(name, []).extend(tracer.kernels[begun[name] :])

        leaves = {name: one for name, one in module.named_modules() if not list(one.children())}
        for name, one in leaves.items():
            one.register_forward_pre_hook(partial(begin, name))
            one.register_forward_hook(partial(end, name))
        with tracer:
            module(x)
    return [(name, leaves[name], kernels) for name, kernels in found.items() if kernels]


def _flops(kernels: list[Kernel]) -> int:
    return sum(kernel.flops for kernel in kernels if kernel.kind != ELEMENTWISE)


def fvcore_flops(net: Net) -> int:
    """A forward pass on one sample by fvcore: convolutions and matrix products, 2 per multiply-add."""
    return 2 * _counts(net, net.module(net.init(0))).get("", 0)


def traced_flops(net: Net) -> int:
    """The same by our own tracer."""
    return _flops(forward_kernels(net, 1))


def _counts(net: Net, module: torch.nn.Module) -> dict[str, int]:
    """Multiply-adds by module name; fvcore counts 1 per multiply-add, forward only."""
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
