"""Local training as pure functions of a carry."""

# The list operators that torch's own optimizers are made of have names that begin with _foreach.
# ruff: noqa: SLF001

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from edgefl.core.training import Optimizer, Sgd
from edgefl.protocol.trees import BUFFERS, Tree, leaves, rebuild, tree_map
from edgefl.protocol.values import Batch, Carry, Net

Tensors: TypeAlias = tuple[Tensor, ...] | list[Tensor]
Objective: TypeAlias = Callable[[Tree, Batch, Carry], tuple[Tensor, Tree]]


def plain_objective(net: Net) -> Objective:
    """The net's own loss on the batch, as (weights, batch, carry) -> (loss, new buffers)."""

    def objective(weights: Tree, batch: Batch, carry: Carry) -> tuple[Tensor, Tree]:  # noqa: ARG001
        found, buffers = net.features(weights, batch.x, True)
        return net.loss(chilled(net, net.head(weights["head"], found)), batch.y), buffers

    return objective


def chilled(net: Net, logits: Tensor) -> Tensor:
    """The logits as training sees them: divided by the net's temperature."""
    return logits if net.temperature == 1.0 else logits / net.temperature


def sgd(
    objective: Objective, optimizer: Optimizer, trained: Sequence[str]
) -> Callable[[Carry, Batch], Carry]:
    """One optimizer step as a pure function of the carry: SGD, Adam or AdamW, as ``optimizer`` says.

    The carry's "weights" are a tree of parts, "slots" the optimizer's state (see ``slots``), "lr" the
    rate, "scalars" sums over steps. Weights and slots are updated in place: ``Fold.start`` made them.
    Gradients are not: autograd may give two weights one and the same tensor, or a constant's expanded view.

    Args:
        objective: (weights, batch, carry) -> (scalar loss, new buffers).
        optimizer: its settings; the rate comes from the carry.
        trained: the parts that are updated; the others get no gradient.
    """
    update = _UPDATES[optimizer.name]

    def step(carry: Carry, batch: Batch) -> Carry:
        weights = carry["weights"]
        chosen = {part: weights[part] for part in trained}
        values = leaves(chosen)
        live = [value.detach().requires_grad_() for value in values]
        loss, buffers = objective({**weights, **rebuild(chosen, live)}, batch, carry)
        gradients: Tensors = torch.autograd.grad(loss, live)
        with torch.no_grad():
            if optimizer.clip_norm is not None:
                gradients = _clipped(gradients, optimizer.clip_norm)
            slots_after = update(optimizer, values, gradients, carry["slots"], carry["lr"])
            scalars = {**carry["scalars"], "loss": carry["scalars"]["loss"] + loss.detach()}
        return {**carry, "weights": {**weights, BUFFERS: buffers}, "slots": slots_after, "scalars": scalars}

    return step


def trainer(weights: Tree, optimizer: Optimizer, trained: Sequence[str], lr: float) -> Carry:
    """A carry to train from: its own copy of the trained parts, fresh optimizer state, no steps yet.

    The other parts are not written by any step, and are taken as they are.
    """
    own = {part: tree_map(torch.clone, weights[part]) for part in trained}
    values = leaves(own)
    return {
        "weights": {**weights, **own},
        "slots": slots(optimizer, values),
        "lr": lr,
        "scalars": {"loss": values[0].new_zeros(())},
    }


def slots(optimizer: Optimizer, values: Sequence[Tensor]) -> dict[str, Any]:
    """The optimizer's state before its first step."""
    if isinstance(optimizer, Sgd):
        return {"momentum": _zeros(values) if optimizer.momentum else [], "steps": 0}
    return {"mean": _zeros(values), "square": _zeros(values), "steps": 0}


def _zeros(values: Sequence[Tensor]) -> list[Tensor]:
    return [torch.zeros_like(value) for value in values]


def _clipped(gradients: Tensors, most: float) -> Tensors:
    """The gradients at a 2-norm, over all of them, of at most ``most``; as ``clip_grad_norm_`` reckons."""
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    return torch._foreach_mul(gradients, torch.clamp(most / (norm + 1e-6), max=1.0))


def _update_sgd(optimizer: Any, values: list[Tensor], gradients: Tensors, state: Any, lr: float) -> Any:
    if optimizer.weight_decay:
        gradients = torch._foreach_add(gradients, values, alpha=optimizer.weight_decay)
    if optimizer.momentum:
        momentum = state["momentum"]
        torch._foreach_mul_(momentum, optimizer.momentum)
        torch._foreach_add_(momentum, gradients)
        if optimizer.nesterov:
            gradients = torch._foreach_add(gradients, momentum, alpha=optimizer.momentum)
        else:
            gradients = momentum
    torch._foreach_add_(values, gradients, alpha=-lr)
    return {**state, "steps": state["steps"] + 1}


def _update_adam(optimizer: Any, values: list[Tensor], gradients: Tensors, state: Any, lr: float) -> Any:
    steps = state["steps"] + 1
    first, second = optimizer.betas
    if optimizer.weight_decay:
        if optimizer.name == "adamw":
            torch._foreach_mul_(values, 1 - lr * optimizer.weight_decay)
        else:
            gradients = torch._foreach_add(gradients, values, alpha=optimizer.weight_decay)
    torch._foreach_lerp_(state["mean"], gradients, 1 - first)
    torch._foreach_mul_(state["square"], second)
    torch._foreach_addcmul_(state["square"], gradients, gradients, 1 - second)
    root = torch._foreach_sqrt(state["square"])
    torch._foreach_div_(root, (1 - second**steps) ** 0.5)
    torch._foreach_add_(root, optimizer.eps)
    torch._foreach_addcdiv_(values, state["mean"], root, -lr / (1 - first**steps))
    return {**state, "steps": steps}


_UPDATES = {"sgd": _update_sgd, "adam": _update_adam, "adamw": _update_adam}
