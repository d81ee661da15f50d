"""Models as pure functions of their weights, and what methods add to their training."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from edgefl.core.errors import UserError
from edgefl.core.user_code import returned
from edgefl.protocol.meta_device import meta_device
from edgefl.protocol.trees import Tree, tree_map

_FEATURES = "(features, new buffers), a tensor and a dict"

Carry: TypeAlias = dict[str, Any]


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The batch mean of cross-entropy; logits (B, C), labels (B,) of int64."""
    if transformed():
        # vmap decomposes torch's own into a dozen operators.
        return -F.log_softmax(logits, dim=-1).gather(-1, labels.unsqueeze(-1)).mean()
    return F.cross_entropy(logits, labels)


def transformed() -> bool:
    """Whether a function transform such as ``vmap`` is active."""
    return bool(torch._C._are_functorch_transforms_active())  # noqa: SLF001 - torch.func offers no other way to ask


class Seen(NamedTuple):
    """One training step's forward pass, as terms of the objective see it.

    Attributes:
        net: as it is trained, with all that methods around the one that asks have changed.
        weights: the model's, as they are trained.
        x: (B, *shape); where the phase has several views, the first.
        y: (B,).
        features: (B, l).
        logits: (B, C), before any temperature.
        layers: the activations that terms asked for, by name.
        views: the features of all views, (V * B, l), the first view's first.
    """

    net: "Net"
    weights: Tree
    x: Tensor
    y: Tensor
    features: Tensor
    logits: Tensor
    layers: Mapping[str, Tensor]
    views: Tensor


@dataclass(frozen=True)
class Term:
    """What a method adds to the objective of the base that it is built on.

    Attributes:
        loss: (what the step has seen, carry) -> scalar.
        layers: the names of the layers whose activations it reads; see ``Net.layers``.
    """

    loss: Callable[[Seen, Carry], Tensor]
    layers: tuple[str, ...] = ()


class Stage(NamedTuple):
    """A body's last stage, which can be run at a part of its width.

    Attributes:
        before: the layer whose activation is its input.
        after: the layer whose activation is its output.
        call: (weights, activation (B, D, ...), share) -> (B, ceil(share * D'), ...): the stage of the first
            channels of each of its layers, on the first channels of the activation, in training mode.
    """

    before: str
    after: str
    call: Callable[[Tree, Tensor, float], Tensor]


@dataclass(frozen=True)
class Net:
    """A model as pure functions of its weights.

    Attributes:
        name: for messages.
        init: seed -> weights, a tree ``{part: {name: tensor}}`` with the part ``buffers`` last
            (empty where the model has none).
        features: (weights, x, train) -> (features (B, l), new buffers); ``train`` chooses batch
            statistics and returns updated running ones.
        head: (head weights, features) -> logits (B, C).
        shape: one sample's shape, (channels, height, width).
        classes: C.
        feature_width: l.
        module: weights -> an ``nn.Module`` from x to logits, for tools that need one.
        trained: the parts that local training changes.
        temperature: training divides the logits by it.
        sample_temperature: (logits (B, C), labels (B,)) -> (B, 1), by which training divides the logits too,
            without a gradient; None for none.
        loss: (logits, labels) -> scalar, what training minimises.
        layers: the names of the body's layers whose activations tell what it has learned, in order: after
            their nonlinearity and before pooling. See ``edgefl.protocol.layers``.
        stage: the body's last stage; None where it cannot be run at a part of its width.
    """

    name: str
    init: Callable[[int], Tree]
    features: Callable[[Tree, Tensor, bool], tuple[Tensor, Tree]]
    head: Callable[[Tree, Tensor], Tensor]
    shape: tuple[int, ...]
    classes: int
    feature_width: int
    module: Callable[[Tree], nn.Module]
    trained: tuple[str, ...] = ("body", "head")
    temperature: float = 1.0
    sample_temperature: Callable[[Tensor, Tensor], Tensor] | None = None
    loss: Callable[[Tensor, Tensor], Tensor] = cross_entropy
    layers: tuple[str, ...] = ()
    stage: Stage | None = None
    terms: tuple[Term, ...] = ()

    def with_term(self, loss: Callable[[Seen, Carry], Tensor], layers: tuple[str, ...] = ()) -> "Net":
        """The net with one more term of the objective."""
        return replace(self, terms=(*self.terms, Term(loss, layers)))

    def first_layers(self, count: int) -> tuple[str, ...]:
        """The names of the first layers of the body; the layer after its last is the classifier.

        Raises:
            UserError: the net has fewer.
        """
        known = len(self.layers)
        if not known:
            raise UserError(
                f"{self.name} has no inner layers whose activations can be read",
                hint="use a model with inner layers, such as cnn2",
            )
        if count > known + 1:
            raise UserError(
                f"the first {count} layers were asked for, and {self.name} has {known + 1}",
                hint=f"ask for at most {known + 1}: {', '.join(self.layers)} and the classifier",
            )
        return self.layers[:count]

    def logits(self, weights: Tree, x: Tensor) -> Tensor:
        """Evaluation: running statistics, temperature 1; x (B, *shape) -> (B, C)."""
        features, _ = self.passed(weights, x, training=False)
        return self.classified(weights, features)

    def passed(self, weights: Tree, x: Tensor, *, training: bool) -> tuple[Tensor, Tree]:
        """Features and new buffers."""
        found = returned(self.features(weights, x, training), tuple, self.features, _FEATURES)
        features, buffers = found if len(found) == 2 else (None, None)  # noqa: PLR2004 - features and buffers
        returned(buffers, dict, self.features, _FEATURES)
        return returned(features, Tensor, self.features, _FEATURES), buffers

    def classified(self, weights: Tree, features: Tensor) -> Tensor:
        """Logits."""
        return returned(self.head(weights["head"], features), Tensor, self.head, "logits (a tensor)")

    def parts(self) -> dict[str, tuple[str, ...]]:
        """The names of every part's tensors; each name is in one part."""
        return {part: tuple(tensors) for part, tensors in _on_meta(self.init).items()}

    def on_meta(self) -> Tree:
        """The weights' shapes, without data; new tensors every time."""
        return tree_map(_another, _on_meta(self.init))


# Cached, because building a deep model even without data takes as long as some training steps; by ``init``,
# because a net with another term or temperature has the same weights, and no step may pay for building them.
@lru_cache(maxsize=64)
def _on_meta(init: Callable[[int], Tree]) -> Tree:
    with meta_device():
        return init(0)


def _another(leaf: Tensor) -> Tensor:
    return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device=leaf.device)


@dataclass(frozen=True)
class Predictor:
    """A model to evaluate or export.

    Attributes:
        logits: (weights, x (B, *shape)) -> (B, C), in evaluation mode.
    """

    weights: Tree
    logits: Callable[[Tree, Tensor], Tensor]

    @property
    def net(self) -> Net | None:
        """The net whose ``logits`` these are; None where a method predicts in a way of its own."""
        owner = getattr(self.logits, "__self__", None)
        return owner if isinstance(owner, Net) else None

    def has_layers(self, net: Net) -> bool:
        """Whether the weights are those of a net, so that more can be looked at than logits."""
        return isinstance(self.weights, dict) and net.parts().keys() <= self.weights.keys()
