"""Checks the contract of methods on digits with four clients.

The method runs through the same planning, clock and learner as any run; nothing is saved.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from edgefl.compute import loop
from edgefl.compute.job import Outcome
from edgefl.compute.local import Local
from edgefl.compute.threads import one_thread
from edgefl.compute.vmapped import Vmapped
from edgefl.core import catalogue
from edgefl.core.errors import EdgeflError, UserError
from edgefl.core.user_code import defined_at, explained, internal, is_users
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
        where: the file and line of the function that breaks it; empty where no single one does.
        hint: what to do about it; may be empty.
        trace: the traceback, if it raised an error.
    """

    promise: str
    kept: bool | None
    detail: str
    where: str = ""
    hint: str = ""
    trace: str = ""


class Broken(NamedTuple):
    """How a promise is broken.

    Attributes:
        detail: in one sentence.
        functions: those that may break it, the likeliest first.
    """

    detail: str
    functions: tuple[Callable[..., Any], ...] = ()


Check: TypeAlias = Callable[[Planned], Broken | None]

_PLANNED = "functions return what they should, on tensors without data"


def check_method(method: Mapping[str, Any]) -> list[Finding]:
    """Checks a method's promises.

    Args:
        method: its name and parameters, as in a scenario.

    Raises:
        UserError: the name or a parameter is wrong.
    """
    try:
        planned = _planned(method)
    except UserError as error:
        if not is_users(error.where.rpartition(":")[0]):
            raise
        return [_raised(_PLANNED, error)]
    return [
        Finding(_PLANNED, True, ""),
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
            "public": {"samples": 100},
        },
        "model": "mlp",
        "method": dict(method),
        "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9}},
        "fleet": "home-lab",
        "server": {"rounds": 2},
    }
    (draft,) = drafts(scenario)
    return plan(draft, DataAccess())


def _finding(promise: str, check: Check, planned: Planned) -> Finding:
    """A check's finding; an exception breaks the promise."""
    try:
        broken = check(planned)
    except BaseException as error:
        told = error if isinstance(error, EdgeflError) else explained(error)
        if told is None and not isinstance(error, Exception):
            raise
        return _raised(promise, told or internal(error))
    if broken is None:
        return Finding(promise, True, "")
    places = filter(None, map(defined_at, broken.functions))
    return Finding(promise, False, broken.detail, str(next(places, "")))


def _raised(promise: str, error: EdgeflError) -> Finding:
    return Finding(promise, False, error.what, error.where, error.hint, error.trace)


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


def _bytes(planned: Planned) -> Broken | None:
    for learner, need in _steps(planned):
        (task,) = learner.context.group(need.merged[:1]).tasks
        trace = planned.plan.price(need.exchange).traces[0]
        upload, down = loop.work(task).upload, learner.context.builder.exchange(task.job).down
        ways = (
            ("down", trace.down, task.payload, down),
            ("up", trace.up, upload, task.fold.finish),
        )
        for way, traced, real, function in ways:
            if dict(traced) != bytes_by_part(real):
                what = f"{need.exchange}, {way}: traced {dict(traced)}, real {bytes_by_part(real)}"
                return Broken(what, (function,))
    return None


class _Call(NamedTuple):
    """A call of a method's function, as a run makes it.

    Attributes:
        name: the function's name and its exchange's.
        function: the function.
        arguments: what it is called with.
        kept: those of the trees that are around which it must not change, by name.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    kept: dict[str, Tree]


def _calls(planned: Planned) -> Generator[_Call, Any, None]:
    """Every function of each exchange, called for one client; is sent what the function returned."""
    for learner, need in _steps(planned):
        context, name = learner.context, need.exchange
        server = context.versions[need.version - 1]
        (task, *others) = context.group(need.merged).tasks
        exchange, fold = context.builder.exchange(task.job), task.fold
        yield _Call(f"{name}'s down", exchange.down, (server, task.job.client), {"server state": server})
        kept = {"payload": task.payload, "client state": task.state or {}}
        carry = yield _Call(f"{name}'s start", fold.start, (task.payload, task.state, task.ctx), kept)
        for phase in fold.phases:
            batch = next(iter(task.batches(phase)))
            carry = yield _Call(f"{phase.name}'s step", phase.step, (carry, batch), kept)
        upload, _ = yield _Call(f"{name}'s finish", fold.finish, (carry, task.ctx), kept)
        uploads = [upload, *(loop.work(other).upload for other in others)]
        arrivals = [
            Arrival(one, each.payload, each.ctx, 0, weight)
            for one, each, weight in zip(uploads, (task, *others), need.weights, strict=True)
        ]
        merged = {"server state": server, "payload": task.payload, "upload": upload}
        yield _Call(f"{name}'s merge", torch.no_grad()(exchange.merge), (server, arrivals), merged)


def _unmodified(planned: Planned) -> Broken | None:
    calls = _calls(planned)
    result: Any = None
    with one_thread(), suppress(StopIteration):
        while True:
            call = calls.send(result)
            before = {name: tree_map(torch.clone, tree) for name, tree in call.kept.items()}
            result = call.function(*call.arguments)
            for name, tree in call.kept.items():
                if _differences(tree, before[name], _identical):
                    return Broken(f"{call.name} modifies its {name}", (call.function,))
    return None


def _order(planned: Planned) -> Broken | None:
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
            what = f"{need.exchange} merges the same arrivals into another state if their order changes"
            return Broken(what, (exchange.merge,))
    return None


def _repeatable(planned: Planned) -> Broken | None:
    calls = _calls(planned)
    result: Any = None
    with one_thread(), suppress(StopIteration):
        while True:
            call = calls.send(result)
            first, second = (call.function(*map(_copied, call.arguments)) for _ in range(2))
            if not _same(first, second):
                return Broken(f"{call.name} returns something else when it is called again", (call.function,))
            result = call.function(*call.arguments)
    one, other = _learned(planned), _learned(planned)
    if _differences(_last_version(one), _last_version(other), _identical):
        return Broken("two runs with one seed end with different server states")
    states, others = one.context.states, other.context.states
    for client in states.clients():
        if _differences(states.get(client), others.get(client), _identical):
            return Broken(f"two runs with one seed leave client {client} with different states")
    return None


def _copied(value: Any) -> Any:
    """A value whose tensors are copies; of a dataclass or a batch, the value itself."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if type(value) is list else value


def _same(one: Any, other: Any) -> bool:
    """Whether two results are equal to the bit."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return _identical(one, other) or bool(torch.allclose(one, other, rtol=0, atol=0, equal_nan=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other)


def _together(planned: Planned) -> Broken | None:
    """A client has the same upload and state alone as stacked with clients of other sample counts."""
    vmapped = Vmapped(planned.plan.scenario.task.clients, sys.maxsize)
    for learner, need in _steps(planned):
        stacked = Local(learner.context, vmapped, ahead=False)
        alone = {outcome.job: outcome for outcome in learner.engine.outcomes(need.merged)}
        work = learner.context.builder.exchange(need.merged[0]).work
        for outcome in stacked.outcomes(need.merged):
            differences = _differences(_results(alone[outcome.job]), _results(outcome), _near)
            if differences:
                what = f"{need.exchange}: client {outcome.job.client} has another {differences[0]}"
                return Broken(what, (work.start, *(phase.step for phase in work.phases), work.finish))
    return None


def _results(outcome: Outcome) -> Tree:
    scalars = {name: torch.tensor(value) for name, value in outcome.scalars.items()}
    return {"upload": outcome.upload, "state": outcome.state or {}, "scalars": scalars}


def _last_version(learner: Learner) -> Tree:
    versions = learner.context.versions
    return versions[max(versions)]


def _predicts(planned: Planned) -> Broken | None:
    learner, method = _learned(planned), planned.learning.methods[0]
    models = (("global", method.global_model), ("personal", method.personal_model))
    scores = learner.evaluate(max(learner.context.versions))
    for (name, function), score in zip(models, scores, strict=True):
        if score and function and not torch.isfinite(torch.as_tensor(score.loss)).all():
            return Broken(f"the {name} model's logits are not finite", (function,))
    return None


def _neutral(planned: Planned) -> Finding:
    """The promise of methods with neutral parameters."""
    neutral = planned.learning.methods[0].neutral
    promise = "equals FedAvg bit for bit at neutral parameters"
    if neutral is None:
        return Finding(promise, None, "the method has no neutral parameters")
    name = planned.plan.scenario.method.name

    build = catalogue.load("methods", name).build

    def check(_: Planned) -> Broken | None:
        method, fedavg = (
            _last_version(_learned(_planned(settings)))
            for settings in ({"name": name, **neutral}, {"name": "fedavg"})
        )
        what = f"differs from FedAvg at {neutral or 'its defaults'}"
        return Broken(what, (build,)) if _differences(method, fedavg, _identical) else None

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
