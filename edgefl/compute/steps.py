"""The work of any network of modules, traced on the meta device.

Dropout and stochastic depth are switched off: their masks are drawn from chance, which no trace has, and cost
next to nothing.
"""

import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from edgefl.compute.tracer import Tracer
from edgefl.core.cost import ELEMENTWISE, Kernel, Work
from edgefl.core.errors import RunError
from edgefl.core.optimizers import Optimizer
from edgefl.protocol import Net
from edgefl.protocol.meta_device import meta_device
from edgefl.protocol.training import slots, updated

Make = Callable[[], nn.Module]

# Norms and activations that runtimes for inference do in the same pass as the product before them.
FUSED = frozenset("native_batch_norm relu hardtanh hardsigmoid leaky_relu sigmoid tanh".split())  # noqa: SIM905 - names as words


def training_step(
    make: Make, batch: int, shape: Sequence[int], optimizer: Optimizer, *, last_layer: bool = False
) -> Work:
    """The kernels of one training step of a network, x (batch, *shape) -> logits (batch, C).

    With ``last_layer`` only the module with the last parameters is trained, the others being frozen; in
    training mode all the same, as fine-tuning scripts leave them.
    """
    with meta_device():
        network = make().train()
        for module in network.modules():
            if isinstance(module, _DropoutNd) or type(module).__name__ == "StochasticDepth":
                module.eval()
        trained = [each for each in network.modules() if list(each.parameters(recurse=False))][-1:]
        weights = dict((trained[0] if last_layer else network).named_parameters())
        network.requires_grad_(False)
        values = [weight.requires_grad_() for weight in weights.values()]
        state = slots(optimizer, values)
        x, labels = torch.empty(batch, *shape), torch.empty(batch, dtype=torch.int64)
        with Tracer() as tracer:
            kernels = tracer.begin_step({"weights": {"body": weights}, "slots": state})
            gradients = torch.autograd.grad(F.cross_entropy(network(x), labels), values)
            with torch.no_grad():
                updated(optimizer, values, gradients, state, optimizer.lr)
    return Work.of(kernels)


def forward_pass(make: Make, batch: int, shape: Sequence[int], *, fused: bool = False) -> Work:
    """The kernels of one batch without gradients; ``fused``, as runtimes for inference run them."""
    with meta_device(), torch.no_grad():
        network, x = make().eval(), torch.empty(batch, *shape)
        with Tracer() as tracer:
            network(x)
    return Work.of(_fused(tracer.kernels) if fused else tracer.kernels)


def _fused(kernels: Iterable[Kernel]) -> Iterator[Kernel]:
    """The kernels, in order, without those that are part of the product before them."""
    joins = False
    for kernel in kernels:
        product = kernel.kind != ELEMENTWISE
        joins = product or (joins and kernel.op.rstrip("_") in FUSED)
        if product or not joins:
            yield kernel


# fvcore's operators that are convolutions and matrix products; we count the rest (norms, pooling) by bytes.
_FVCORE = {"conv": "convolution"} | dict.fromkeys(("linear", "addmm", "matmul", "bmm", "einsum"), "product")
# The largest difference between the counts, as a share.
_TOLERANCE = 1e-3


def forward_counts(net: Net) -> tuple[int, int]:
    """A forward pass's operations in products by fvcore and as traced; a ``RunError`` if they differ."""
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
        warnings.simplefilter("ignore")
        analysis = FlopCountAnalysis(net.module(net.init(0)), torch.zeros(1, *net.shape))
        analysis.set_op_handle("aten::scaled_dot_product_attention", _attention)
        analysis.unsupported_ops_warnings(enabled=False)
        analysis.uncalled_modules_warnings(enabled=False)
        operators = analysis.by_operator()
    logging.getLogger("fvcore.nn.jit_analysis").setLevel(logging.WARNING)
    found = Counter[str]()
    for name, kind in _FVCORE.items():
        found[kind] += 2 * int(operators[name])
    return found


def _attention(inputs: list[Any], _outputs: list[Any]) -> Counter[str]:
    """Multiply-adds of fused attention, which fvcore does not count: queries by keys, and that by values."""
    queries, keys, values = (one.type().sizes() for one in inputs[:3])
    return Counter(bmm=prod(queries[:-1]) * keys[-2] * (queries[-1] + values[-1]))
