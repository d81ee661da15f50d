"""Checks the contract of methods on digits with four clients.

The method runs through the same planning, clock and learner as any run; nothing is saved.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from edgefl.compute import loop
from edgefl.compute.job import Outcome
from edgefl.compute.local import Local
from edgefl.compute.threads import one_thread
from edgefl.compute.vmapped import Vmapped
from edgefl.core.errors import EdgeflError
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import Planned, plan
from edgefl.protocol import Arrival, Tree, bytes_by_part, flatten, tree_map
from edgefl.runs.context import Context
from edgefl.runs.group import drafts
from edgefl.runs.learner import Learner
from edgefl.runs.states import States
from edgefl.world.driver import converse, simulate
from edgefl.world.needs import Feedback, Merge, Need


class Finding(NamedTuple):
    """The result of checking one promise.

    Attributes:
        promise: its text.
        kept: whether it is kept; None if it does not apply.
        detail: how it is broken, or why it does not apply; empty if it is kept.
    """

    promise: str
    kept: bool | None
    detail: str


def check_method(method: Mapping[str, Any]) -> list[Finding]:
    """Checks a method's promises.

    Args:
        method: its name and parameters, as in a scenario.

    Raises:
        UserError: the name or a parameter is wrong, or the method cannot be planned.
    """
    planned = _planned(method)
    return [
        _finding("traced bytes match real payloads and uploads", _bytes, planned),
        _finding("functions leave their arguments unchanged", _unmodified, planned),
        _finding("merging does not depend on the order of arrivals", _order, planned),
        _finding("equal seeds give equal bits", _repeatable, planned),
        _finding("training together equals training alone", _together, planned),
        _finding("models predict finite logits", _predicts, planned),
        _neutral(planned),
    ]


def _planned(method: Mapping[str, Any]) -> Planned:
    scenario = {
        "task": {
            "dataset": "digits",
            "clients": 4,
            "partition": {"name": "dirichlet", "alpha": 1.0, "min_samples": 20},
        },
        "model": "mlp",
        "method": dict(method),
        "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9}},
        "fleet": "home-lab",
        "server": {"rounds": 2},
    }
    (draft,) = drafts(scenario)
    return plan(draft, DataAccess())


def _finding(promise: str, check: Callable[[Planned], str], planned: Planned) -> Finding:
    """A check's finding; an exception breaks the promise."""
    try:
        detail = check(planned)
    except EdgeflError as error:
        detail = error.what
    except Exception as error:  # noqa: BLE001 - the method under test may raise anything
        detail = f"{type(error).__name__}: {error}"
    return Finding(promise, not detail, detail)


def _merges(planned: Planned) -> list[Merge]:
    """Every merge of the run."""
    merges: list[Merge] = []

    def answer(need: Need) -> Feedback:
        if isinstance(need, Merge):
            merges.append(need)
        return Feedback()

    converse(simulate(planned.plan, lambda _: None), answer)
    return merges


def _learner(planned: Planned) -> Learner:
    """A learner with the reference engine and all states in memory."""
    context = Context(planned, States(None, 0))
    return Learner(context, Local(context, loop.Loop(), ahead=False))


def _steps(planned: Planned) -> Iterator[tuple[Learner, Merge]]:
    """A learner before each merge of the run."""
    learner = _learner(planned)
    for need in _merges(planned):
        yield learner, need
        learner.merge(need)


def _learned(planned: Planned) -> Learner:
    """A learner after all merges of the run."""
    learner = _learner(planned)
    for need in _merges(planned):
        learner.merge(need)
    return learner


def _bytes(planned: Planned) -> str:
    for learner, need in _steps(planned):
        (task,) = learner.context.group(need.merged[:1]).tasks
        trace = planned.plan.price(need.exchange).traces[0]
        upload = loop.work(task).upload
        for way, traced, real in (("down", trace.down, task.payload), ("up", trace.up, upload)):
            if dict(traced) != bytes_by_part(real):
                return f"{need.exchange}, {way}: traced {dict(traced)}, real {bytes_by_part(real)}"
    return ""


def _unmodified(planned: Planned) -> str:
    learner = _learner(planned)
    for need in _merges(planned):
        (task,) = learner.context.group(need.merged[:1]).tasks
        server = learner.context.versions[need.version - 1]
        arguments = {"server state": server, "payload": task.payload, "client state": task.state or {}}
        before = {name: tree_map(torch.clone, tree) for name, tree in arguments.items()}
        learner.merge(need)
        for name, tree in arguments.items():
            if _differences(tree, before[name], _identical):
                return f"{need.exchange} modifies its {name}"
    return ""


def _order(planned: Planned) -> str:
    method = planned.learning.methods[0]
    for learner, need in _steps(planned):
        exchange = next(each for each in method.exchanges if each.name == need.exchange)
        tasks = learner.context.group(need.merged).tasks
        arrivals = [
            Arrival(loop.work(task).upload, task.payload, task.ctx, 0, weight)
            for task, weight in zip(tasks, need.weights, strict=True)
        ]
        with torch.no_grad(), one_thread():
            server = learner.context.versions[need.version - 1]
            forth, back = exchange.merge(server, arrivals), exchange.merge(server, arrivals[::-1])
        if _differences(forth, back, _close):
            return f"{need.exchange} merges the same arrivals into another state if their order changes"
    return ""


def _repeatable(planned: Planned) -> str:
    first, second = _learned(planned), _learned(planned)
    if _differences(_last_version(first), _last_version(second), _identical):
        return "two runs with one seed end with different server states"
    states, others = first.context.states, second.context.states
    for client in states.clients():
        if _differences(states.get(client), others.get(client), _identical):
            return f"two runs with one seed leave client {client} with different states"
    return ""


def _together(planned: Planned) -> str:
    """A client has the same upload and state alone as stacked with clients of other sample counts."""
    vmapped = Vmapped(planned.plan.scenario.task.clients, sys.maxsize)
    for learner, need in _steps(planned):
        stacked = Local(learner.context, vmapped, ahead=False)
        alone = {outcome.job: outcome for outcome in learner.engine.outcomes(need.merged)}
        for outcome in stacked.outcomes(need.merged):
            differences = _differences(_results(alone[outcome.job]), _results(outcome), _near)
            if differences:
                return f"{need.exchange}: client {outcome.job.client} has another {differences[0]}"
    return ""


def _results(outcome: Outcome) -> Tree:
    scalars = {name: torch.tensor(value) for name, value in outcome.scalars.items()}
    return {"upload": outcome.upload, "state": outcome.state or {}, "scalars": scalars}


def _last_version(learner: Learner) -> Tree:
    versions = learner.context.versions
    return versions[max(versions)]


def _predicts(planned: Planned) -> str:
    learner = _learned(planned)
    scores = zip(("global", "personal"), learner.evaluate(max(learner.context.versions)), strict=True)
    for name, score in scores:
        if score and not torch.isfinite(torch.as_tensor(score.loss)).all():
            return f"the {name} model's logits are not finite"
    return ""


def _neutral(planned: Planned) -> Finding:
    """The promise of methods with neutral parameters."""
    neutral = planned.learning.methods[0].neutral
    promise = "equals FedAvg bit for bit at neutral parameters"
    if neutral is None:
        return Finding(promise, None, "the method has no neutral parameters")
    name = planned.plan.scenario.method.name

    def check(_: Planned) -> str:
        method, fedavg = (
            _last_version(_learned(_planned(settings)))
            for settings in ({"name": name, **neutral}, {"name": "fedavg"})
        )
        return f"not at {neutral}" if _differences(method, fedavg, _identical) else ""

    return _finding(promise, check, planned)


def _differences(tree: Tree, other: Tree, equal: Callable[[Tensor, Tensor], bool]) -> list[str]:
    """The paths of leaves that only one tree has, or that differ."""
    first, second = flatten(tree), flatten(other)
    both = first.keys() & second.keys()
    return [key for key in {**first, **second} if key not in both or not equal(first[key], second[key])]


def _identical(leaf: Tensor, other: Tensor) -> bool:
    return leaf.dtype == other.dtype and torch.equal(leaf, other)


def _close(leaf: Tensor, other: Tensor) -> bool:
    """Equal up to rounding, and finite."""
    return torch.allclose(leaf, other, rtol=1e-4, atol=1e-5)


def _near(leaf: Tensor, other: Tensor) -> bool:
    """Equal up to rounding errors that add up over many steps."""
    return leaf.shape == other.shape and torch.allclose(leaf, other, rtol=1e-3, atol=1e-4)
