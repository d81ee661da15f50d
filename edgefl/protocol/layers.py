"""Activations inside a net, and passes of frozen copies.

A net's ``features`` runs modules whose names are known (see ``edgefl.protocol.modules``). While ``reading``
is open, the outputs of those that are asked for are kept; a pass that nobody trains on can stop after the
last of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from edgefl.core.errors import UserError
from edgefl.protocol.nets import Net, Seen
from edgefl.protocol.trees import Tree, leaves, tree_map


class _EnoughError(Exception):
    """All activations that were asked for are there."""


@dataclass
class _Reading:
    names: tuple[str, ...]
    stops: bool
    activations: dict[str, Tensor] = field(default_factory=dict)

    def keep(self, name: str, activation: Tensor) -> None:
        self.activations[name] = activation
        if self.stops and len(self.activations) == len(self.names):
            raise _EnoughError


_reading: ContextVar[_Reading | None] = ContextVar("reading", default=None)


@contextmanager
def reading(names: Iterable[str], *, stops: bool = False) -> Iterator[Mapping[str, Tensor]]:
    """The activations of the layers of these names, as passes inside compute them.

    Args:
        names: of modules of the net's body.
        stops: whether a pass ends, and with it the block, once all of them are there.
    """
    wanted = _Reading(tuple(dict.fromkeys(names)), stops)
    token = _reading.set(wanted)
    try:
        yield wanted.activations
    except _EnoughError:
        if not stops:
            raise
    finally:
        _reading.reset(token)


def observed(module: nn.Module, net: str) -> AbstractContextManager[None]:
    """Runs a module inside, whose inner activations may be read; see ``_observed``."""
    wanted = _reading.get()
    return _NOBODY if wanted is None else _observed(module, net, wanted)


# Opening a generator's context takes longer, at every pass of a small model.
_NOBODY = nullcontext()


@contextmanager
def _observed(module: nn.Module, net: str, wanted: _Reading) -> Iterator[None]:
    """Keeps the activations that are read; a ``UserError`` for a name that no layer has."""
    known = dict(module.named_modules())
    hooks = []
    try:
        for name in wanted.names:
            if name not in known:
                raise UserError(
                    f"{net} has no layer {name!r}", hint=f"its layers are {', '.join(filter(None, known))}"
                )
            hooks.append(known[name].register_forward_hook(_keeper(wanted, name)))
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _keeper(wanted: _Reading, name: str) -> Any:
    return lambda module, inputs, output: wanted.keep(name, output)  # noqa: ARG005 - a hook's signature


def forward(net: Net, weights: Tree, x: Tensor, y: Tensor) -> tuple[Seen, Tree]:
    """A training step's forward pass, and the new buffers; x (B, *shape) or of several views, y (B,).

    All views of x (V, B, *shape) are passed at once; the logits are the first view's.
    """
    several = x.dim() > len(net.shape) + 1
    names = [name for term in net.terms for name in term.layers]
    with reading(names) if names else _NOBODY as read:
        views, buffers = net.passed(weights, x.flatten(0, 1) if several else x, training=True)
    layers, features = read or {}, views
    if several:
        x, size = x[0], len(y)
        features = views[:size]
        layers = {name: activation[:size] for name, activation in layers.items()}
    return Seen(net, weights, x, y, features, net.classified(weights, features), layers, views), buffers


def layers_of(net: Net, weights: Tree, x: Tensor, names: Iterable[str]) -> Mapping[str, Tensor]:
    """The activations (B, ...) of some layers in evaluation mode, without a gradient; x (B, *shape).

    The pass ends after the last of them.

    Raises:
        UserError: the net has no such layer.
    """
    with torch.no_grad(), reading(names, stops=True) as activations:
        net.features(weights, x, False)
    return activations


def frozen(net: Net, weights: Tree, x: Tensor) -> tuple[Tensor, Tensor]:
    """Features (B, l) and logits (B, C) in evaluation mode, without a gradient; x (B, *shape)."""
    with torch.no_grad():
        features, _ = net.features(weights, x, False)
        return features, net.classified(weights, features)


def tensors_before(net: Net, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The names, by part, of the weights and running statistics that ``layers_of`` needs for these layers.

    Raises:
        UserError: the net has no such layer.
    """
    # Zeros are made without being written: those of a large model's last layers cost nothing.
    weights = tree_map(lambda leaf: torch.zeros(leaf.shape, dtype=leaf.dtype, device="cpu"), net.on_meta())
    with _Uses() as uses:
        layers_of(net, weights, torch.zeros(1, *net.shape, device="cpu"), names)
    found = {
        part: tuple(name for name, leaf in tree.items() if id(leaf) in uses.ids)
        for part, tree in weights.items()
    }
    return {part: names for part, names in found.items() if names}


class _Uses(TorchFunctionMode):
    """Collects the identities of all tensors that functions are called with."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[int] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.ids.update(id(one) for one in leaves((args, kwargs or {})) if isinstance(one, Tensor))
        return func(*args, **(kwargs or {}))
