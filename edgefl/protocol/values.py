"""The values a method is made of: nets, phases, folds, exchanges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from edgefl.core.errors import ScenarioError
from edgefl.core.params import Component
from edgefl.core.steps import Passes
from edgefl.core.training import Local
from edgefl.core.user_code import returned
from edgefl.protocol.trees import Payload, Tree, tree_map

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

    def logits(self, weights: Tree, x: Tensor) -> Tensor:
        """Evaluation: running statistics, temperature 1; x (B, *shape) -> (B, C)."""
        features, _ = self.features(weights, x, False)
        return self.head(weights["head"], features)

    def parts(self) -> dict[str, tuple[str, ...]]:
        """The names of every part's tensors; each name is in one part."""
        return dict(self._parts)

    @cached_property
    def _parts(self) -> dict[str, tuple[str, ...]]:
        # Cached, because building a deep model even without data takes as long as some training steps.
        return {part: tuple(tensors) for part, tensors in self.on_meta().items()}

    def on_meta(self) -> Tree:
        """The weights' shapes, without data; new tensors every time."""
        return tree_map(_another, self._on_meta)

    @cached_property
    def _on_meta(self) -> Tree:
        # Cached for the same reason.
        with torch.device("meta"):
            return self.init(0)


def _another(leaf: Tensor) -> Tensor:
    return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device=leaf.device)


@dataclass(frozen=True)
class Predictor:
    """A model to evaluate or export.

    Attributes:
        weights: a tree.
        logits: (weights, x (B, *shape)) -> (B, C), in evaluation mode.
    """

    weights: Tree
    logits: Callable[[Tree, Tensor], Tensor]


class Batch(NamedTuple):
    """One step's data: x (B, *shape), or (V, B, *shape) where the phase asks for V > 1 views; y (B,)."""

    x: Tensor
    y: Tensor


@dataclass(frozen=True)
class Ctx:
    """What the server knows about a job; it costs no payload bytes.

    Attributes:
        client: its number.
        round: from 0.
        lr: the round's learning rate.
        steps: optimizer steps the job takes over all its phases.
        samples: n_k.
        class_counts: (C,) float32, the client's samples of each class.
        work: the job's steps as a share of those that its phases take in full, in [0, 1].
        settings: what the exchange sets for this job, by name; see ``Exchange.settings``.
    """

    client: int
    round: int
    lr: float
    steps: int
    samples: int
    class_counts: Tensor
    work: float = 1.0
    settings: Mapping[str, float] = field(default_factory=dict)


class Assignment(NamedTuple):
    """A job as the server assigns it: plain numbers, before anything is stacked.

    Attributes:
        ctx: without settings.
        rounds: how many the run has; None if another limit ends it.
        device: the name of the client's device.
    """

    ctx: Ctx
    rounds: int | None = 1
    device: str = ""

    @property
    def progress(self) -> float:
        """0 in the first round, 1 in the last, evenly between.

        Raises:
            ScenarioError: nobody knows how many rounds there will be.
        """
        if self.rounds is None:
            raise ScenarioError(
                "a setting by round needs to know the number of rounds",
                where="server.until",
                hint="add rounds to server.until; the first limit that is met ends the run",
            )
        last = max(self.rounds - 1, 1)
        return min(max(self.ctx.round, 0), last) / last


@dataclass(frozen=True)
class Phase:
    """One phase of local work.

    Attributes:
        name: for the ledger, such as "train".
        step: (carry, batch) -> carry.
        passes: its length, in epochs or steps; a job of fewer steps ends earlier.
        data: "train" (shuffled, augmented) or "plain" (in order, never augmented).
        views: the number of augmentations of each sample in a batch.
        augment: the phase's augmentation; None is the task's.
    """

    name: str
    step: Callable[[Carry, Batch], Carry]
    passes: Passes
    data: str = "train"
    views: int = 1
    augment: Component | None = None


@dataclass(frozen=True)
class Fold:
    """A client's work as a value: start, phases of steps, finish.

    ``start`` copies what the steps will change, so that payload and state are never modified. The carry's
    "scalars" are summed over steps and reported as means per step.
    """

    start: Callable[[Payload, Tree | None, Ctx], Carry]
    phases: tuple[Phase, ...]
    finish: Callable[[Carry, Ctx], tuple[Payload, Tree | None]]


@dataclass(frozen=True)
class When:
    """When an exchange happens: before all rounds, every ``every`` rounds, or after all rounds."""

    at: str = "round"
    every: int = 1

    def __post_init__(self) -> None:
        if self.at not in {"start", "round", "end"} or self.every < 1:
            raise ValueError(f"at must be start, round or end, and every at least 1, not {self}")


@dataclass(frozen=True)
class Arrival:
    """One client's upload, as ``merge`` gets it.

    Attributes:
        upload: as decoded, and re-expressed if it was stale or scaled
            (``edgefl.protocol.staleness``).
        received: the payload that the upload updates: what the client received, or would receive now if the
            upload is re-expressed.
        ctx: what the server knows about the job.
        staleness: the number of server versions since the job was dispatched.
        weight: in averages, set by the policy: the client's samples, or the same for all.
    """

    upload: Payload
    received: Payload
    ctx: Ctx
    staleness: int
    weight: float


@dataclass(frozen=True)
class Exchange:
    """One kind of exchange between server and clients.

    Attributes:
        name: such as "train".
        down: (server state, client) -> payload; its shapes are the same for every client.
        work: what a client does.
        merge: (server state, arrivals in the order of clients) -> server state.
        when: at the start, in rounds, at the end.
        who: "policy" (the server's selection) or "all".
        stateful: whether the work writes client state; such work counts even when it is late.
        stale: whether uploads from older versions can be merged; if not, policies that do so are refused.
        settings: what the server sets for each job, by name, such as a temperature; like the learning rate
            it costs no payload bytes. None sets nothing.
    """

    name: str
    down: Callable[[Tree, int], Payload]
    work: Fold
    merge: Callable[[Tree, Sequence[Arrival]], Tree]
    when: When = When()
    who: str = "policy"
    stateful: bool = False
    stale: bool = True
    settings: Callable[[Assignment], Mapping[str, float]] | None = None

    def context(self, assignment: Assignment) -> Ctx:
        """The job's context, with the settings of this exchange."""
        if self.settings is None:
            return assignment.ctx
        settings = returned(self.settings(assignment), Mapping, self.settings, "a dict of numbers")
        return replace(assignment.ctx, settings=settings)


@dataclass(frozen=True)
class Method:
    """A federated method.

    Attributes:
        server: initial weights -> server state.
        client: initial weights -> client state, or None if clients keep nothing.
        exchanges: in order.
        global_model: server state -> predictor; None if the method has no global model.
        personal_model: (server state, client state or None) -> predictor.
        neutral: parameters at which the method equals FedAvg bit for bit on the same seeds; None if there are
            none.
    """

    server: Callable[[Tree], Tree]
    client: Callable[[Tree], Tree | None]
    exchanges: tuple[Exchange, ...]
    personal_model: Callable[[Tree, Tree | None], Predictor]
    global_model: Callable[[Tree], Predictor] | None = None
    neutral: Mapping[str, Any] | None = None

    def initial(self, weights: Tree) -> Tree:
        """The server state of these initial weights.

        Raises:
            UserError: ``server`` returned something else.
        """
        return returned(self.server(weights), dict, self.server, "a server state (a dict)")


class Site(NamedTuple):
    """What a method's ``build(params, site)`` gets besides its own parameters.

    Attributes:
        net: the client's model.
        local: epochs or steps, batch size and optimizer of local training.
        base: builds the parent method on a net; FedAvg unless the scenario names another.
    """

    net: Net
    local: Local
    base: Callable[[Net], Method]
