"""The losses of single samples in training, collected where something reads them.

Training minimises a batch's mean. What a selector such as Oort reads is the root mean square over samples,
which a mean does not tell. A job whose fold is ``measured`` sums the squares of its samples' losses beside
its loss; the losses are those of ``fit_loss``, without a method's other terms. All other jobs do nothing of
it.
"""

import math
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from edgefl.core.errors import RunError
from edgefl.protocol.nets import Carry
from edgefl.protocol.trees import Payload, Tree
from edgefl.protocol.values import Ctx, Fold

LOSS_RMS = "loss_rms"
"""The root mean square of the losses of all samples of all steps."""

SQUARES, SAMPLES = "loss_squares", "loss_samples"
"""Sums over a job's samples, among its carry's scalars."""

_notes: ContextVar[list[Tensor] | None] = ContextVar("notes", default=None)


def note(loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, labels: Tensor) -> None:
    """Notes the losses of a batch's samples, if somebody reads them; logits (B, C), labels (B,).

    ``loss`` gives the batch's mean.
    """
    notes = _notes.get()
    if notes is not None:
        one = torch.vmap(lambda row, label: loss(row.unsqueeze(0), label.unsqueeze(0)))
        notes.append(one(logits.detach(), labels).square().sum())


def noted(objective: Callable[..., tuple[Tensor, Tree]]) -> Callable[..., tuple[Tensor, Any]]:
    """An objective that also returns the sum of its samples' squared losses: (loss, (new buffers, sum)).

    Raises:
        RunError: when it is called and notes none.
    """

    def function(*args: Any) -> tuple[Tensor, Any]:
        notes: list[Tensor] = []
        token = _notes.set(notes)
        try:
            loss, buffers = objective(*args)
        finally:
            _notes.reset(token)
        if not notes:
            raise RunError(
                f"the selection reads {LOSS_RMS}, and the method's objective does not tell samples' losses",
                hint="compute its loss with edgefl.protocol.fit_loss, or choose another selector",
            )
        return loss, (buffers, sum(notes[1:], notes[0]))

    return function


def measured(fold: Fold) -> Fold:
    """The fold whose gradient steps also sum their samples' squared losses."""

    def start(payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:
        carry = fold.start(payload, state, ctx)
        scalars = carry.get("scalars")
        if not scalars or "loss" not in scalars:
            return carry
        zeros = {name: torch.zeros_like(scalars["loss"]) for name in (SQUARES, SAMPLES)}
        return {**carry, "scalars": {**scalars, **zeros}}

    return replace(fold, start=start)


def unmeasured(scalars: Mapping[str, Any]) -> dict[str, Any]:
    """A carry's scalars without the sums over samples, for phases that do not report."""
    return {name: value for name, value in scalars.items() if name not in {SQUARES, SAMPLES}}


def summarised(scalars: Mapping[str, float]) -> Mapping[str, float]:
    """A job's scalars, with ``LOSS_RMS`` in place of the sums, or means, that it is made of."""
    if SQUARES not in scalars:
        return scalars
    return {**unmeasured(scalars), LOSS_RMS: math.sqrt(scalars[SQUARES] / scalars[SAMPLES])}
