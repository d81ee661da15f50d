"""What a step may make of labels: learn from them at the temperature of training, and nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from edgefl.compute.job import Task
from edgefl.compute.kernels import PRODUCTS, tensors
from edgefl.compute.process import one_thread
from edgefl.data.batching import normalised
from edgefl.protocol import (
    BUFFERS,
    Batch,
    Carry,
    Exchange,
    Net,
    Phase,
    Seen,
    Tree,
    at_temperature,
    leaves,
    tree_map,
)
from edgefl.protocol.meta_device import meta_device
from edgefl.protocol.trees import paths
from edgefl.protocol.whole import Dispatched
from edgefl.runs.contract.findings import Broken, Inapplicable
from edgefl.runs.contract.setting import Round, Setting, copied, differences, identical, last_version


class _Step(NamedTuple):
    """A step of a phase that a client is about to take.

    Attributes:
        place: the phase's place in the exchange.
        carry: before the step, for the caller to keep.
    """

    task: Task
    place: int
    phase: Phase
    carry: Carry
    batch: Batch

    def of(self, exchange: Exchange) -> Phase:
        """The same phase of another method's exchange."""
        return exchange.work.phases[self.place]

    def after(self, phase: Phase | None = None, *, labels: int = 0) -> Carry:
        """The carry after the step, or a phase's in its place; to every label something is added."""
        phase = phase or self.phase
        classes = len(self.task.ctx.class_counts)
        batch = Batch(self.batch.x, (self.batch.y + labels) % classes if labels else self.batch.y)
        return phase.step(copied(self.carry), batch)


def _steps(one: Round) -> Iterator[_Step]:
    """The first step of each phase of an exchange, for its first client."""
    task = one.tasks[0]
    carry = task.fold.start(task.payload, task.state, task.ctx)
    for place, phase in enumerate(task.fold.phases):
        batch = next(iter(task.batches(phase)), None)
        if batch is not None:
            step = _Step(task, place, phase, carry, batch)
            yield step
            carry = step.after()


class _Operators(Dispatched):  # type: ignore[no-untyped-call]
    """Lists the operators that run inside, with the shapes of their results."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[tuple[str, list[torch.Size]]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        self.found.append((func.overloadpacket.__name__, [one.shape for one in tensors(result)]))
        return result

    @property
    def products(self) -> list[tuple[str, list[torch.Size]]]:
        """The matrix products; operators that only check values are not run on tensors without any."""
        return [one for one in self.found if one[0] in PRODUCTS]


def shapes_alone(setting: Setting) -> Broken | None:
    """A step calls the same operators on all labels and pixels, and does the products that were traced."""
    for one in setting.firsts():
        with one_thread():
            for step in _steps(one):
                words = _other_work(step)
                if words:
                    what = f"{step.phase.name}'s step does other work on {words} than on a batch of its data"
                    hint = "costs are traced once: compute with masks, such as torch.where, for all labels"
                    return Broken(what, (step.phase.step,), hint)
    return None


def _other_work(step: _Step) -> str:
    """On which batch of the same shapes a step does other work, in words; empty if on none."""
    (x, y), classes = step.batch, len(step.task.ctx.class_counts)
    expected = _operators(step, step.carry, step.batch)
    with meta_device():
        blank = Batch(_without_data(x), _without_data(y))
        traced = _operators(step, tree_map(_without_data, step.carry), blank)
    if traced.products != expected.products:
        return "tensors without data"
    others = {"other images": Batch(torch.rand_like(x), y)}
    if step.phase.data != "public":
        others["images of one class"] = Batch(x, torch.zeros_like(y))
        others["images of all classes"] = Batch(x, torch.arange(len(y)) % classes)
    real = expected.found
    unlike = (words for words, each in others.items() if _operators(step, step.carry, each).found != real)
    return next(unlike, "")


def _without_data(leaf: Any) -> Any:
    return leaf.to("meta") if isinstance(leaf, Tensor) else leaf


def _operators(step: _Step, carry: Carry, batch: Batch) -> _Operators:
    carry, operators = copied(carry), _Operators()
    with operators:
        step.phase.step(carry, batch)
    return operators


_COLD = 0.25
_TERMS = "the terms that other methods add to the objective"


def _colder(net: Net) -> Net:
    return replace(net, temperature=net.temperature * _COLD)


def _colder_samples(net: Net) -> Net:
    return replace(net, sample_temperature=lambda logits, labels: logits.new_full((len(labels), 1), _COLD))


def _with_term(net: Net) -> Net:
    def loss(seen: Seen, carry: Carry) -> Tensor:  # noqa: ARG001 - the signature of terms
        trained = leaves({part: seen.weights[part] for part in net.trained})
        return torch.stack([leaf.square().sum() for leaf in trained]).sum()

    return net.with_term(loss)


def objective(setting: Setting) -> Broken | Inapplicable | None:
    """A step that learns from labels minimises the net's objective: at its temperatures, with its terms."""
    changes = {
        f"the net's temperature: it does the same at 1 and at {_COLD}": setting.on(_colder),
        "the samples' temperatures": setting.on(_colder_samples),
        _TERMS: setting.on(_with_term),
    }
    learns = False
    for one in setting.firsts():
        with one_thread():
            for step in filter(_learns, _steps(one)):
                learns, plain = True, _trained(step.after())
                job = f"the job's temperature: it does the same at 1 and at {_COLD}"
                cold = at_temperature(step.carry, step.carry.get("temperature", 1.0) * _COLD)
                found = {job: step._replace(carry=cold).after()}
                found |= {words: step.after(step.of(one.of(method))) for words, method in changes.items()}
                # Terms are for the model of the rounds; a second one, or fine-tuning, may go without.
                if not step.phase.reports or one.exchange.when.at != "round":
                    del found[_TERMS]
                for words, carry in found.items():
                    if not differences(plain, _trained(carry), identical):
                        what = f"{step.phase.name}'s step forgets {words}"
                        return Broken(what, (step.phase.step,), _FIT)
    return None if learns else Inapplicable("no step learns from labels")


_FIT = "make the loss with NetObjective(net), or with fit(net, seen, carry) of what forward() has seen"


def _learns(step: _Step) -> bool:
    """Whether a step changes weights by labels; those of public images are their places, and no labels."""
    if step.phase.data == "public":
        return False
    after = _trained(step.after())
    moved = differences(_trained(step.carry), after, identical)
    return bool(moved) and bool(differences(after, _trained(step.after(labels=1)), identical))


def _trained(carry: Carry) -> dict[str, Tensor]:
    """The weights of all models in a carry, without running statistics."""
    return {
        ".".join(map(str, path)): leaf
        for path, leaf in paths(carry)
        if "weights" in path and BUFFERS not in path and isinstance(leaf, Tensor)
    }


def predictions(setting: Setting) -> Broken | None:
    """Models predict finite logits, whatever the temperature of training."""
    learner, method, cold = setting.ended(), setting.built, setting.on(_colder)
    server, state = last_version(learner), learner.context.state(0)
    federation = learner.context.builder.learning.federation
    x = normalised(federation, federation.test[:64], split="test")
    pairs: list[tuple[str, Any, Any, tuple[Tree, ...]]] = [
        ("global", method.global_model, cold.global_model, (server,)),
        ("personal", method.personal_model, cold.personal_model, (server, state)),
    ]
    for name, function, other, given in pairs:
        if function is None:
            continue
        warm, chilled = (one.logits(one.weights, x) for one in (function(*given), other(*given)))
        if not torch.isfinite(warm).all():
            return Broken(f"the {name} model's logits are not finite", (function,))
        if not identical(warm, chilled):
            what = f"the {name} model predicts at the temperature of training, instead of at 1"
            return Broken(what, (function,), "predict with net.logits")
    return None
