"""The values a method is made of: phases, folds, exchanges."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from torch import Tensor

from edgefl.core.errors import EdgeflError, ScenarioError
from edgefl.core.params import Component
from edgefl.core.scenario import LocalTraining
from edgefl.core.steps import Passes
from edgefl.core.user_code import WrongValueError, returned
from edgefl.protocol.nets import Carry, Net, Predictor
from edgefl.protocol.trees import Payload, Tree, leaves

TRAIN = "train"
"""The name of the exchange in which clients train; most methods have it once."""

_CARRY, _FINISHED = "a carry (a dict)", "(upload, client state), two dicts or a dict and None"


def tensors(
    value: Any, function: Callable[..., Any], expected: str, failure: type[EdgeflError] = WrongValueError
) -> Tree:
    """A tree of tensors that a function returned; see ``returned``."""
    tree: Tree = returned(value, dict, function, expected, failure)
    for leaf in leaves(tree):
        returned(leaf, Tensor, function, f"{expected}, with tensors alone in it", failure)
    return tree


class Batch(NamedTuple):
    """One step's data: x (B, *shape), or (V, B, *shape) where the phase asks for V > 1 views; y (B,)."""

    x: Tensor
    y: Tensor


@dataclass(frozen=True)
class Ctx:
    """What the server knows about a job; it costs no payload bytes.

    Attributes:
        round: from 0.
        lr: the round's learning rate.
        steps: optimizer steps the job takes over its phases that report.
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
        data: "train" (shuffled, augmented), "plain" (in order, never augmented), or "public": the task's
            public images, in order and never augmented, with each one's place as its label; ``passes`` then
            says how many samples they are.
        views: the number of augmentations of each sample in a batch.
        augment: the phase's augmentation; None is the task's.
        reports: whether its steps count in the means of the carry's scalars.
    """

    name: str
    step: Callable[[Carry, Batch], Carry]
    passes: Passes
    data: str = "train"
    views: int = 1
    augment: Component | None = None
    reports: bool = True

    def stepped(self, carry: Carry, batch: Batch) -> Carry:
        return returned(self.step(carry, batch), dict, self.step, _CARRY)


@dataclass(frozen=True)
class Fold:
    """A client's work as a value: start, phases of steps, finish.

    ``start`` copies what the steps will change, so that payload and state are never modified. The carry's
    "scalars" are summed over steps and reported as means per step. The state that ``finish`` returns replaces
    the parts that it has; None changes nothing.
    """

    start: Callable[[Payload, Tree | None, Ctx], Carry]
    phases: tuple[Phase, ...]
    finish: Callable[[Carry, Ctx], tuple[Payload, Tree | None]]

    def started(self, payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:
        return returned(self.start(payload, state, ctx), dict, self.start, _CARRY)

    def finished(self, carry: Carry, ctx: Ctx, state: Tree | None) -> tuple[Payload, Tree | None]:
        """What a client that began with ``state`` sends, and its whole new state; None if it writes none."""
        found = returned(self.finish(carry, ctx), tuple, self.finish, _FINISHED)
        upload, own = found if len(found) == 2 else (None, None)  # noqa: PLR2004 - upload and state
        tensors(upload, self.finish, _FINISHED)
        return upload, None if own is None else {**(state or {}), **tensors(own, self.finish, _FINISHED)}


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
        merge: (server state, arrivals in the order of clients) -> server state.
        who: "policy" (the server's selection) or "all".
        stateful: whether the work writes client state; such work counts even when it is late.
        confirmed: the parts of the client state that mirror what the server has merged. A client whose upload
            came too late keeps them as they were; other parts keep what the late work wrote.
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
    confirmed: tuple[str, ...] = ()
    stale: bool = True
    settings: Callable[[Assignment], Mapping[str, float]] | None = None

    def context(self, assignment: Assignment) -> Ctx:
        """The job's context, with the settings of this exchange."""
        if self.settings is None:
            return assignment.ctx
        settings = returned(self.settings(assignment), Mapping, self.settings, "a dict of numbers")
        return replace(assignment.ctx, settings=dict(settings))


@dataclass(frozen=True)
class Method:
    """A federated method.

    Attributes:
        server: initial weights -> server state.
        client: initial weights -> client state, or None if clients keep nothing.
        exchanges: in order.
        global_model: server state -> predictor; None if the method has no global model.
        personal_model: (server state, client state or None) -> predictor.
    """

    server: Callable[[Tree], Tree]
    client: Callable[[Tree], Tree | None]
    exchanges: tuple[Exchange, ...]
    personal_model: Callable[[Tree, Tree | None], Predictor]
    global_model: Callable[[Tree], Predictor] | None = None

    @property
    def trains(self) -> tuple[Phase, ...]:
        """The phases of the exchange "train", if there is one."""
        return tuple(phase for each in self.exchanges if each.name == TRAIN for phase in each.work.phases)

    def initial(self, weights: Tree) -> Tree:
        """The server state of these initial weights; a ``UserError`` if ``server`` returns something else."""
        return returned(self.server(weights), dict, self.server, "a server state (a dict)")


class Site(NamedTuple):
    """What a method's ``build(site)`` gets besides its own parameters.

    Attributes:
        local: epochs or steps, batch size and optimizer of local training.
        base: builds the parent method on a net; FedAvg unless the scenario names another.
        public: the public images (P, C, H, W) of uint8; None if the task has none.
    """

    net: Net
    local: LocalTraining
    base: Callable[[Net], Method]
    clients: int = 1
    public: Tensor | None = None
