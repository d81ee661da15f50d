"""The work of a step of any network of modules, traced on the meta device.

Dropout and stochastic depth are switched off: their masks are drawn from chance, which no trace has, and cost
next to nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import nn

from edgefl.compute.tracer import Tracer
from edgefl.core.cost import ELEMENTWISE, Kernel, Work
from edgefl.core.optimizers import Optimizer
from edgefl.protocol.meta_device import meta_device
from edgefl.protocol.training import slots, updated

Make = Callable[[], nn.Module]

# What runtimes for inference do in the same pass as the product before it.
FUSED = frozenset("native_batch_norm relu hardtanh hardsigmoid leaky_relu sigmoid tanh".split())  # noqa: SIM905 - names as words


def training_step(
    make: Make, batch: int, shape: Sequence[int], optimizer: Optimizer, *, last_layer: bool = False
) -> Work:
    """The kernels of one training step: forward, cross-entropy, backward and update.

    Args:
        make: makes the network, x (batch, *shape) -> logits (batch, C).
        last_layer: whether only the module with the last parameters is trained, the others being frozen; in
            training mode all the same, as fine-tuning scripts leave them.

    Raises:
        UnknownOperatorError: an operator has no cost yet.
    """
    with meta_device():
        network = _without_masks(make().train())
        trained = [each for each in network.modules() if list(each.parameters(recurse=False))][-1:]
        weights = dict((trained[0] if last_layer else network).named_parameters())
        for parameter in network.parameters():
            parameter.requires_grad_(False)
        values = [weight.requires_grad_() for weight in weights.values()]
        state = slots(optimizer, values)
        x, labels = torch.empty(batch, *shape), torch.empty(batch, dtype=torch.int64)
        tracer = Tracer()
        with tracer:
            kernels = tracer.begin_step({"weights": {"body": weights}, "slots": state})
            gradients = torch.autograd.grad(F.cross_entropy(network(x), labels), values)
            with torch.no_grad():
                updated(optimizer, values, gradients, state, optimizer.lr)
    return Work.of(kernels)


def forward_pass(make: Make, batch: int, shape: Sequence[int], *, fused: bool = False) -> Work:
    """The kernels of one batch without gradients; other arguments as for ``training_step``.

    Args:
        fused: as a runtime for inference runs them, not operator by operator: a norm or an activation after a
            product is part of it, as in ``edgefl.export.kernels``.

    Raises:
        UnknownOperatorError: an operator has no cost yet.
    """
    with meta_device(), torch.no_grad():
        network, x = make().eval(), torch.empty(batch, *shape)
        tracer = Tracer()
        with tracer:
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


def _without_masks(network: nn.Module) -> nn.Module:
    for module in network.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd) or type(module).__name__ == "StochasticDepth":  # noqa: SLF001
            module.eval()
    return network
