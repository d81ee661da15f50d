"""Local training as pure functions of a carry."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeAlias

import torch
from torch import Tensor

from edgefl.core.errors import UserError
from edgefl.core.optimizers import Optimizer
from edgefl.core.user_code import defined_at, returned
from edgefl.protocol.layers import forward
from edgefl.protocol.nets import Carry, Net, Seen, transformed
from edgefl.protocol.sample_losses import SAMPLES, SQUARES, note, noted
from edgefl.protocol.trees import BUFFERS, Tree, leaves, rebuild, tree_map
from edgefl.protocol.values import Batch

Tensors: TypeAlias = Sequence[Tensor]
Objective: TypeAlias = Callable[[Tree, Batch, Carry], tuple[Tensor, Tree]]


@dataclass(frozen=True, eq=False)
class NetObjective:
    """A net's own loss on a batch and its terms: (weights, batch, carry) -> (loss, new buffers).

    Attributes:
        net: as it is trained, with all that methods around the one that asks have changed.
    """

    net: Net

    def __call__(self, weights: Tree, batch: Batch, carry: Carry) -> tuple[Tensor, Tree]:
        seen, buffers = forward(self.net, weights, batch.x, batch.y)
        return fit(self.net, seen, carry), buffers


def fit(net: Net, seen: Seen, carry: Carry) -> Tensor:
    """The net's loss of a forward pass as training sees it, and its terms."""
    loss = fit_loss(net, seen.logits, seen.y, carry)
    for term in net.terms:
        loss = loss + returned(term.loss(seen, carry), (Tensor, int, float), term.loss, "a loss (a tensor)")
    return loss


def fit_loss(net: Net, logits: Tensor, labels: Tensor, carry: Carry) -> Tensor:
    """The net's loss of the logits (B, C) as training sees them; where a run reads them, by sample too."""
    logits = chilled(net, logits, labels, carry)
    note(net.loss, logits, labels)
    return returned(net.loss(logits, labels), Tensor, net.loss, "a loss (a tensor)")


def chilled(net: Net, logits: Tensor, labels: Tensor, carry: Carry) -> Tensor:
    """The logits (B, C) as training sees them: divided by the net's, the job's and the samples' temperatures.

    The job's is the carry's "temperature", if there is one; labels (B,).
    """
    cold = logits if net.temperature == 1.0 else logits / net.temperature
    if "temperature" in carry:
        cold = cold / carry["temperature"]
    if net.sample_temperature is not None:
        cold = cold / net.sample_temperature(logits.detach(), labels)
    return cold


def beside(carry: Carry) -> Carry:
    """What an objective sees of a carry beside the weights: nothing that the optimizer alone reads."""
    return {key: value for key, value in carry.items() if key not in {"weights", "slots", "lr"}}


@dataclass(frozen=True)
class GradientStep:
    """One optimizer step as a pure function of the carry.

    A value, so that an engine that trains many clients at once can take it apart: the objective under
    ``vmap``, one backward pass and one update for all of them. A method's own step around it also works
    under ``vmap``, more slowly.

    The carry's "weights" are a tree of parts, "slots" the optimizer's state (see ``slots``) by ``key``, "lr"
    the rate, "scalars" sums over steps (see ``edgefl.protocol.sample_losses`` for those of samples). Its
    "shift", if there is one, is a tree like the trained parts that is added to every gradient, before it is
    clipped. Weights and slots are updated in place: ``Fold.start`` made them. Gradients are not: autograd may
    return the same tensor for two weights, or a constant's expanded view.

    Attributes:
        objective: (weights, batch, what is ``beside`` them in the carry) -> (scalar loss, new buffers).
        optimizer: its settings; the rate comes from the carry.
        trained: the parts that are updated; the others get no gradient.
    """

    objective: Objective
    optimizer: Optimizer
    trained: tuple[str, ...]

    @property
    def key(self) -> str:
        """Names the optimizer's state: steps on the same parts share it."""
        return "+".join(self.trained)

    def shift(self, carry: Carry) -> Tensors | None:
        """What is added to the gradients; None for nothing."""
        found = carry.get("shift")
        return None if found is None else leaves({part: found[part] for part in self.trained})

    def __call__(self, carry: Carry, batch: Batch) -> Carry:
        weights = carry["weights"]
        chosen = {part: weights[part] for part in self.trained}
        values, scalars = leaves(chosen), dict(carry["scalars"])
        measures = SQUARES in scalars
        minimised = noted(self._minimised) if measures else self._minimised

        def objective(live: Tensors) -> tuple[Tensor, Any]:
            return minimised({**weights, **rebuild(chosen, live)}, batch, beside(carry))

        gradients, loss, buffers = gradients_of(objective, values)
        if measures:
            buffers, squares = buffers
            scalars[SQUARES] = scalars[SQUARES] + squares
            scalars[SAMPLES] = scalars[SAMPLES] + len(batch.y)
        key = self.key
        with torch.no_grad():
            slots_after = updated(
                self.optimizer, values, gradients, carry["slots"][key], carry["lr"], shift=self.shift(carry)
            )
        scalars["loss"] = scalars["loss"] + loss.detach()
        return {
            **carry,
            "weights": {**weights, BUFFERS: buffers},
            "slots": {**carry["slots"], key: slots_after},
            "scalars": scalars,
        }

    def _minimised(self, *given: Any) -> tuple[Tensor, Tree]:
        """What the objective returns; a ``UserError`` unless that is a scalar loss and the new buffers."""
        match found := self.objective(*given):
            case (Tensor() as loss, dict() as buffers):
                pass
            case _:
                returned(found, (), self.objective, "(loss, buffers), a scalar tensor and a dict")
        if loss.dim():
            raise UserError(
                f"the objective's loss has the shape {tuple(loss.shape)} instead of being one number",
                where=str(defined_at(self.objective) or ""),
                hint="average it over the batch, as .mean() does",
            )
        return loss, buffers


@dataclass(frozen=True)
class Within:
    """A gradient step on a carry inside the carry, such as a second model's.

    Attributes:
        key: the inner carry's, made by ``trainer``; the objective sees the inner carry alone, and its losses
            are not reported.
    """

    key: str
    step: GradientStep

    def __call__(self, carry: Carry, batch: Batch) -> Carry:
        return {**carry, self.key: self.step(carry[self.key], batch)}


def trainer(
    weights: Tree,
    optimizer: Optimizer,
    trained: Sequence[str],
    lr: float,
    steps: Sequence[GradientStep] = (),
) -> Carry:
    """A carry to train from: its own copy of the trained parts, fresh optimizer state, no steps yet.

    The other parts are shared, because no step writes to them.

    Args:
        trained: the parts that any step trains.
        steps: those that train, if not all of them train all of ``trained``.
    """
    own = {part: tree_map(torch.clone, weights[part]) for part in trained}
    values = leaves(own)
    sets = dict.fromkeys(step.trained for step in steps) or [tuple(trained)]
    chosen = {"+".join(each): leaves({part: own[part] for part in each}) for each in sets}
    return {
        "weights": {**weights, **own},
        "slots": {key: slots(optimizer, each) for key, each in chosen.items()},
        "lr": lr,
        "scalars": {"loss": values[0].new_zeros(())},
    }


def is_carry(value: Any) -> bool:
    """Whether an entry of a carry is itself one to train from; see ``Within``."""
    return isinstance(value, dict) and value.keys() >= {"weights", "slots"}


def at_temperature(carry: Carry, temperature: Any) -> Carry:
    """The carry at a job's temperature, as are all those inside it that train; see ``chilled``."""
    inner = {key: at_temperature(value, temperature) for key, value in carry.items() if is_carry(value)}
    return {**carry, **inner, "temperature": temperature}


def slots(optimizer: Optimizer, values: Tensors) -> dict[str, Any]:
    """The optimizer's state before its first step."""
    return optimizer.state(lambda: [torch.zeros_like(value) for value in values])


def gradients_of(
    objective: Callable[[Tensors], tuple[Tensor, Any]], values: Tensors
) -> tuple[Tensors, Tensor, Any]:
    """The gradients at ``values``, the loss, and what the objective returns with it."""
    if transformed():
        # torch.autograd.grad does not work under vmap.
        gradients, (loss, others) = torch.func.grad_and_value(objective, has_aux=True)(list(values))
        return gradients, loss, others
    live = [value.detach().requires_grad_() for value in values]
    loss, others = objective(live)
    return torch.autograd.grad(loss, live), loss, others


def updated(
    optimizer: Optimizer,
    values: Tensors,
    gradients: Tensors,
    state: dict[str, Any],
    lr: float,
    *,
    shift: Tensors | None = None,
    clients: bool = False,
) -> dict[str, Any]:
    """Updates ``values`` and the tensors of ``state`` in place; returns the new state.

    Args:
        gradients: theirs; not written to.
        shift: what is added to the gradients; None for nothing.
        clients: whether the tensors' first dimension counts clients, each with a norm of its own to clip.
    """
    if shift is not None:
        gradients = _each("add", gradients, shift)
    if optimizer.clip_norm is not None:
        gradients = _clipped(gradients, optimizer.clip_norm, clients=clients)
    return optimizer.update(_each, values, gradients, state, lr)


def _clipped(gradients: Tensors, most: float, *, clients: bool) -> Tensors:
    """The gradients scaled to a total 2-norm of at most ``most``, as by ``clip_grad_norm_``."""
    if clients:
        norms = torch.stack([torch.linalg.vector_norm(one.flatten(1), dim=1) for one in gradients])
        scale = torch.clamp(most / (torch.linalg.vector_norm(norms, dim=0) + 1e-6), max=1.0)
        return [one * scale.view(-1, *[1] * (one.dim() - 1)) for one in gradients]
    norm = torch.linalg.vector_norm(torch.stack(list(_each("norm", gradients))))
    return _each("mul", gradients, torch.clamp(most / (norm + 1e-6), max=1.0))


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """``total += left @ right`` in place, of matrices or of batches of them.

    Where it can be avoided there is no second matrix of the total's size.
    """
    if transformed():
        # vmap has no rule for the fused operator, and would call it client by client.
        total.add_(left @ right)
    else:
        add = total.baddbmm_ if total.dim() > 2 else total.addmm_  # noqa: PLR2004 - a matrix's dimensions
        add(left, right)


def _each(name: str, values: Tensors, *operands: Any, **settings: Any) -> Tensors:
    """A tensor's method on each of ``values``; of an operand that is a list, each gets its own."""
    if not transformed():
        return getattr(torch, f"_foreach_{name}")(values, *operands, **settings) or values
    # vmap has no rule for operators on lists, nor for the fused ones in place.
    rows = (operand if isinstance(operand, (list, tuple)) else repeat(operand) for operand in operands)
    each = zip(values, *rows, strict=False)
    if name.startswith("addc"):
        return [value.copy_(getattr(value, name.rstrip("_"))(*row, **settings)) for value, *row in each]
    return [getattr(value, name)(*row, **settings) for value, *row in each]
