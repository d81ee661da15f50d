"""The work of a step of any network of modules, traced on the meta device.

Dropout and stochastic depth are switched off: their masks are drawn from chance, which no trace has, and cost
next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import nn

from edgefl.compute.tracer import Tracer
from edgefl.core.cost import Work
from edgefl.core.optimizers import Optimizer
from edgefl.protocol.training import slots, updated

Make = Callable[[], nn.Module]


def training_step(
    make: Make, batch: int, shape: Sequence[int], optimizer: Optimizer, *, last_layer: bool = False
) -> Work:
    """The kernels of one training step: forward, cross-entropy, backward and update.

    Args:
        make: makes the network, x (B, *shape) -> logits (B, C).
        batch: B.
        shape: one sample's (channels, height, width).
        optimizer: updates the weights.
        last_layer: whether only the module with the last parameters is trained, the others being frozen; in
            training mode all the same, as fine-tuning scripts leave them.

    Raises:
        UnknownOperatorError: an operator has no cost yet.
    """
    with torch.device("meta"):
        network = _without_masks(make().train())
        weights = dict((_last(network) if last_layer else network).named_parameters())
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


def inference(make: Make, batch: int, shape: Sequence[int]) -> Work:
    """The kernels of the inference of one batch, operator by operator, nothing fused.

    Raises:
        UnknownOperatorError: an operator has no cost yet.
    """
    with torch.device("meta"), torch.no_grad():
        network, x = make().eval(), torch.empty(batch, *shape)
        tracer = Tracer()
        with tracer:
            network(x)
    return Work.of(tracer.kernels)


def _last(network: nn.Module) -> nn.Module:
    """The module whose own parameters come last."""
    return [module for module in network.modules() if list(module.parameters(recurse=False))][-1]


def _without_masks(network: nn.Module) -> nn.Module:
    for module in network.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd) or type(module).__name__ == "StochasticDepth":  # noqa: SLF001
            module.eval()
    return network
