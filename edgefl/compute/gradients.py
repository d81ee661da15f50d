"""The gradient step of many clients at once."""

from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from edgefl.compute.stacked import Stack, fixed, over, unwrapped, wrapped
from edgefl.compute.tape import Tape, UnrecordableError, record
from edgefl.protocol import BUFFERS, Batch, Carry, GradientStep, leaves, rebuild, tree_map
from edgefl.protocol.sample_losses import SAMPLES, SQUARES, noted
from edgefl.protocol.training import beside, updated

# A step's operators are recorded after so many calls on tensors of the same shapes. Only the latest kinds of
# calls are known: a number in the carry that changes every round makes new ones.
_FREQUENT, _MOST_KINDS = 8, 1024


class Gradients:
    """Takes gradient steps, and replays the operators of frequent ones, which changes no bit."""

    def __init__(self) -> None:
        # How often each kind was called, and its tape; the latest is last. Holding the step, which may not
        # be hashable, keeps its id from being reused.
        self._known: dict[Hashable, tuple[GradientStep, int, Tape | None]] = {}

    @torch.no_grad()
    def step(self, step: GradientStep, carry: Carry, batch: Batch) -> Carry:
        """An optimizer step of every client, of a carry with stacks and a batch of tensors (C, B, ...)."""
        weights, scalars = carry["weights"], carry["scalars"]
        trees = weights, Batch._make(map(Stack, batch)), beside(carry)
        given = unwrapped([leaf for leaf in leaves(trees) if isinstance(leaf, (Stack, Tensor))])
        function = _function(step, trees)
        losses, *others = (self._tape(step, trees, function, given) or function)(*given)
        sums = {"loss": scalars["loss"].value + losses}
        if SQUARES in scalars:
            sums[SQUARES] = scalars[SQUARES].value + others.pop()
            sums[SAMPLES] = scalars[SAMPLES].value + batch.y.shape[1]
        count = len(leaves(weights[BUFFERS]))
        buffers, gradients = others[:count], others[count:]
        values = unwrapped(leaves({part: weights[part] for part in step.trained}))
        slots, shift = unwrapped(carry["slots"][step.key]), unwrapped(step.shift(carry))
        slots = updated(step.optimizer, values, gradients, slots, carry["lr"], shift=shift, clients=True)
        return {
            **carry,
            "weights": {**weights, BUFFERS: rebuild(weights[BUFFERS], map(Stack, buffers))},
            "slots": {**carry["slots"], step.key: wrapped(slots)},
            "scalars": {**scalars, **wrapped(sums)},
        }

    def _tape(
        self, step: GradientStep, trees: Any, function: Callable[..., list[Tensor]], inputs: list[Tensor]
    ) -> Tape | None:
        """The tape for inputs of these shapes; None where they are rare, or recording is impossible."""
        shapes = tuple((value.shape, value.stride(), value.dtype, value.device) for value in inputs)
        kind = id(step), shapes, repr(fixed(trees))
        _, calls, tape = self._known.pop(kind, (step, 0, None))
        if calls == _FREQUENT:
            with suppress(UnrecordableError):
                tape = record(function, inputs)
        self._known[kind] = step, calls + 1, tape
        if len(self._known) > _MOST_KINDS:
            del self._known[next(iter(self._known))]
        return tape


def _function(step: GradientStep, trees: tuple[Any, Batch, Any]) -> Callable[..., list[Tensor]]:
    """(the tensors of ``trees``) -> losses, new buffers, gradients, and sums of squares where they are read.

    The objective runs under vmap, and autograd outside it: no client's loss reads another's weights, so the
    sum of the losses has each client's gradient at its weights. Vmapped gradients take twice the time.
    """
    measures = SQUARES in trees[2]["scalars"]
    objective = noted(step.objective) if measures else step.objective

    @torch.enable_grad()
    def function(*inputs: Tensor) -> list[Tensor]:
        source = iter(inputs)

        def given(leaf: Any) -> Any:
            if isinstance(leaf, Stack):
                return Stack(next(source))
            return next(source) if isinstance(leaf, Tensor) else leaf

        weights, batch, rest = tree_map(given, trees)
        parts = {part: weights[part] for part in step.trained}
        live = [leaf.value.detach().requires_grad_() for leaf in leaves(parts)]
        losses, others = over(objective, {**weights, **rebuild(parts, map(Stack, live))}, batch, rest)
        buffers, squares = others if measures else (others, ())
        gradients = torch.autograd.grad(losses.value.sum(), live)
        after, sums = ([leaf.value for leaf in leaves(tree)] for tree in (buffers, squares))
        return [losses.value.detach(), *after, *gradients, *sums]

    return function
