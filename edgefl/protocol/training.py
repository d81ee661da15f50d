"""Local training as pure functions of a carry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeAlias

import torch
from torch import Tensor

from edgefl.core.training import Optimizer, Sgd
from edgefl.protocol.trees import BUFFERS, Tree, leaves, rebuild, tree_map
from edgefl.protocol.values import Batch, Carry, Net, transformed

Tensors: TypeAlias = Sequence[Tensor]
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


@dataclass(frozen=True)
class GradientStep:
    """One optimizer step as a pure function of the carry: SGD, Adam or AdamW.

    A value, so that an engine that trains many clients at once can take it apart: the objective under
    ``vmap``, one backward pass and one update for them all. Called under ``vmap`` by a step that a method
    has wrapped around it, it works too, more slowly.

    The carry's "weights" are a tree of parts, "slots" the optimizer's state (see ``slots``), "lr" the
    rate, "scalars" sums over steps. Weights and slots are updated in place: ``Fold.start`` made them.
    Gradients are not: autograd may give two weights one and the same tensor, or a constant's expanded view.

    Attributes:
        objective: (weights, batch, carry) -> (scalar loss, new buffers).
        optimizer: its settings; the rate comes from the carry.
        trained: the parts that are updated; the others get no gradient.
    """

    objective: Objective
    optimizer: Optimizer
    trained: tuple[str, ...]

    def __call__(self, carry: Carry, batch: Batch) -> Carry:
        """The carry after one step."""
        weights = carry["weights"]
        chosen = {part: weights[part] for part in self.trained}
        values = leaves(chosen)

        def objective(live: Tensors) -> tuple[Tensor, Tree]:
            return self.objective({**weights, **rebuild(chosen, live)}, batch, carry)

        gradients, loss, buffers = _gradients(objective, values)
        with torch.no_grad():
            slots_after = updated(self.optimizer, values, gradients, carry["slots"], carry["lr"])
        scalars = {**carry["scalars"], "loss": carry["scalars"]["loss"] + loss.detach()}
        return {
            **carry,
            "weights": {**weights, BUFFERS: buffers},
            "slots": slots_after,
            "scalars": scalars,
        }


def sgd(objective: Objective, optimizer: Optimizer, trained: Sequence[str]) -> GradientStep:
    """One optimizer step on the objective; see ``GradientStep``."""
    return GradientStep(objective, optimizer, tuple(trained))


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


def slots(optimizer: Optimizer, values: Tensors) -> dict[str, Any]:
    """The optimizer's state before its first step."""
    if isinstance(optimizer, Sgd):
        return {"momentum": _zeros(values)} if optimizer.momentum else {}
    return {"mean": _zeros(values), "square": _zeros(values), "steps": 0}


def _zeros(values: Tensors) -> list[Tensor]:
    return [torch.zeros_like(value) for value in values]


def _gradients(
    objective: Callable[[Tensors], tuple[Tensor, Tree]], values: Tensors
) -> tuple[Tensors, Tensor, Tree]:
    """The gradients at ``values``, the loss and the new buffers."""
    if transformed():
        # Under vmap autograd's own calls are refused.
        gradients, (loss, buffers) = torch.func.grad_and_value(objective, has_aux=True)(list(values))
        return gradients, loss, buffers
    live = [value.detach().requires_grad_() for value in values]
    loss, buffers = objective(live)
    return torch.autograd.grad(loss, live), loss, buffers


def updated(
    optimizer: Optimizer,
    values: Tensors,
    gradients: Tensors,
    state: dict[str, Any],
    lr: float,
    *,
    clients: bool = False,
) -> dict[str, Any]:
    """Updates ``values`` and the tensors of ``state`` in place; returns the new state.

    Args:
        optimizer: its settings.
        values: the weights.
        gradients: theirs; not written to.
        state: see ``slots``.
        lr: the rate.
        clients: whether the tensors' first dimension counts clients, each with a norm of its own to clip.
    """
    if optimizer.clip_norm is not None:
        gradients = _clipped(gradients, optimizer.clip_norm, clients=clients)
    return _UPDATES[optimizer.name](optimizer, values, gradients, state, lr)


def _clipped(gradients: Tensors, most: float, *, clients: bool) -> Tensors:
    """The gradients at a 2-norm, over all of them, of at most ``most``; as ``clip_grad_norm_`` reckons."""
    if clients:
        norms = torch.stack([torch.linalg.vector_norm(one.flatten(1), dim=1) for one in gradients])
        scale = torch.clamp(most / (torch.linalg.vector_norm(norms, dim=0) + 1e-6), max=1.0)
        return [one * scale.view(-1, *[1] * (one.dim() - 1)) for one in gradients]
    norm = torch.linalg.vector_norm(torch.stack(list(_each("norm", gradients))))
    return _each("mul", gradients, torch.clamp(most / (norm + 1e-6), max=1.0))


def _update_sgd(optimizer: Any, values: Tensors, gradients: Tensors, state: Any, lr: float) -> Any:
    if optimizer.weight_decay:
        gradients = _each("add", gradients, values, alpha=optimizer.weight_decay)
    if optimizer.momentum:
        momentum = state["momentum"]
        _each("mul_", momentum, optimizer.momentum)
        _each("add_", momentum, gradients)
        if optimizer.nesterov:
            gradients = _each("add", gradients, momentum, alpha=optimizer.momentum)
        else:
            gradients = momentum
    _each("add_", values, gradients, alpha=-lr)
    return state


def _update_adam(optimizer: Any, values: Tensors, gradients: Tensors, state: Any, lr: float) -> Any:
    steps = state["steps"] + 1
    first, second = optimizer.betas
    if optimizer.weight_decay:
        if optimizer.name == "adamw":
            _each("mul_", values, 1 - lr * optimizer.weight_decay)
        else:
            gradients = _each("add", gradients, values, alpha=optimizer.weight_decay)
    _each("mul_", state["mean"], first)
    _each("add_", state["mean"], gradients, alpha=1 - first)
    _each("mul_", state["square"], second)
    _each("addcmul_", state["square"], gradients, gradients, value=1 - second)
    root = _each("sqrt", state["square"])
    _each("div_", root, (1 - second**steps) ** 0.5)
    _each("add_", root, optimizer.eps)
    _each("addcdiv_", values, state["mean"], root, value=-lr / (1 - first**steps))
    return {**state, "steps": steps}


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """``total += left @ right`` in place, without a second matrix of its size where that is possible."""
    if transformed():
        # vmap has no rule for the fused operator, and would go through the clients one by one.
        total.add_(left @ right)
    else:
        total.addmm_(left, right)


def _each(name: str, values: Tensors, *operands: Any, **settings: Any) -> Tensors:
    """A tensor's method on each of ``values``; an operand that is a list gives each its own."""
    if not transformed():
        return getattr(torch, f"_foreach_{name}")(values, *operands, **settings) or values
    # vmap has no rule for operators on lists, nor for the fused ones in place.
    rows = (operand if isinstance(operand, (list, tuple)) else repeat(operand) for operand in operands)
    each = zip(values, *rows, strict=False)
    if name.startswith("addc"):
        return [value.copy_(getattr(value, name.rstrip("_"))(*row, **settings)) for value, *row in each]
    return [getattr(value, name)(*row, **settings) for value, *row in each]


_UPDATES: dict[str, Callable[..., dict[str, Any]]] = {
    "sgd": _update_sgd,
    "adam": _update_adam,
    "adamw": _update_adam,
}
