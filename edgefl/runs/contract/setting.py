"""A method under check: planned on digits with four clients, and run by hand."""

import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from edgefl.compute import loop
from edgefl.compute.job import Local, Task
from edgefl.core import catalogue
from edgefl.core.drafts import Draft
from edgefl.core.errors import ScenarioError
from edgefl.core.overrides import Override, within
from edgefl.planning.learning import DataAccess, learn_from
from edgefl.planning.plan import Planned, plan
from edgefl.protocol import Arrival, Batch, Exchange, Method, Net, Tree, flatten
from edgefl.runs.context import Context
from edgefl.runs.group import drafts
from edgefl.runs.learner import Learner
from edgefl.runs.states import States
from edgefl.world.driver import converse, simulate
from edgefl.world.needs import Feedback, Merge, Need

T = TypeVar("T")


@contextmanager
def _anew() -> Iterator[None]:
    """Inside, users' files are executed again when they are loaded; afterwards, nothing is left of that."""
    folders = [folder.resolve() for folder in catalogue.user_folders()]

    def theirs() -> dict[str, ModuleType]:
        return {
            name: module
            for name, module in list(sys.modules.items())
            if any(Path(getattr(module, "__file__", None) or "/").is_relative_to(one) for one in folders)
        }

    before = theirs()
    for name in before:
        del sys.modules[name]
    try:
        yield
    finally:
        for name in theirs():
            del sys.modules[name]
        sys.modules.update(before)


@dataclass(frozen=True)
class Setting:
    """A method in a small scenario.

    Attributes:
        method: its name and parameters, as in a scenario.
        overrides: settings that replace the scenario's; those of ``method`` hold for this method only.
    """

    method: Mapping[str, Any]
    overrides: tuple[Override, ...] = ()

    @classmethod
    def of(cls, method: Mapping[str, Any], overrides: Sequence[str | Override]) -> "Setting":
        """The setting of a method.

        Raises:
            ScenarioError: a setting names another method, or would make several runs.
        """
        given = tuple(one if isinstance(one, Override) else Override.parse(one) for one in overrides)
        for one in given:
            if one.key in {"method", "method.name"}:
                what = "--method says which method is checked; --set sets its parameters"
                raise ScenarioError(
                    what, where=one.value.place(), hint="for example --set method.base=fedavg"
                )
            if within(one.key, "sweep"):
                raise ScenarioError(
                    "one method is checked at a time, without a sweep", where=one.value.place()
                )
        return cls(method, given)

    def of_other(self, method: Mapping[str, Any]) -> "Setting":
        """The same scenario with another method or other parameters."""
        return Setting(method, tuple(one for one in self.overrides if not within(one.key, "method")))

    @cached_property
    def planned(self) -> Planned:
        """The plan.

        Raises:
            UserError: a name or a parameter is wrong.
        """
        return plan(self.draft, self._access)

    @cached_property
    def draft(self) -> Draft:
        scenario = {
            "task": {
                "dataset": "digits",
                "clients": 4,
                "public": {"samples": 100},
                "partition": {"name": "dirichlet", "alpha": 1.0, "min_samples": 20},
            },
            "model": "mlp",
            "method": dict(self.method),
            "local": {
                "epochs": 1,
                "batch_size": 32,
                "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9},
            },
            "fleet": "home-lab",
            "server": {"rounds": 2},
            # Few images a client: each check trains anew.
            "evaluate": {"on": "holdout", "holdout": 0.7},
        }
        (draft,) = drafts(scenario, self.overrides)
        return draft

    @cached_property
    def _access(self) -> DataAccess:
        return DataAccess()

    @property
    def built(self) -> Method:
        """The method on the first of the nets."""
        return self.planned.learning.methods[0]

    @property
    def build(self) -> Callable[..., Method]:
        """What builds it, in the method's file."""
        build: Callable[..., Method] = self.planned.learning.spec.method.build
        return build

    def on(self, change: Callable[[Net], Net]) -> Method:
        """The method on its net changed."""
        return self._on({key: change(net) for key, net in self._access.nets.items()}, self.draft)

    def _on(self, nets: Mapping[str, Net], draft: Draft) -> Method:
        federation = self.planned.learning.federation
        return learn_from(draft.scenario.learning, draft.document, federation, dict(nets)).methods[0]

    def anew(self) -> Method:
        """The method made from its file again, as in a process in which nothing was called yet."""
        with _anew():
            return self._on(self._access.nets, Setting(self.method, self.overrides).draft)

    @cached_property
    def _merges(self) -> list[Merge]:
        merges: list[Merge] = []

        def answer(need: Need) -> Feedback:
            if isinstance(need, Merge):
                merges.append(need)
            return Feedback()

        converse(simulate(self.planned.plan, lambda _: None), answer)
        return merges

    def learner(self) -> Learner:
        """A learner with the reference engine and all states in memory."""
        context = Context(self.planned, States())
        return Learner(context, Local(context, loop.Loop(), ahead=False))

    def learned(self, weigh: Callable[[Sequence[float]], tuple[float, ...]] = tuple) -> Learner:
        """A learner after all merges of the run, in which arrivals have other weights than the policy's."""
        moment = self._moments[0]
        for need in self._merges:
            moment = self._merged(moment, replace(need, weights=weigh(need.weights)))
        return self._at(moment)

    def ended(self) -> Learner:
        """A learner after all merges of the run that ``rounds`` gives."""
        return self._after(len(self._merges))

    def rounds(self) -> "Iterator[Round]":
        """The run before each of its merges."""
        for place, need in enumerate(self._merges):
            yield Round(self._after(place), need)

    @cached_property
    def _moments(self) -> "list[_Moment]":
        """The run before its merges, as far as it was asked for: it is trained only once."""
        return [_Moment.of(self.learner())]

    def _after(self, merges: int) -> Learner:
        for need in self._merges[len(self._moments) - 1 : merges]:
            self._moments.append(self._merged(self._moments[-1], need))
        return self._at(self._moments[merges])

    def _merged(self, moment: "_Moment", need: Merge) -> "_Moment":
        learner = self._at(moment)
        learner.merge(need)
        return _Moment.of(learner)

    def _at(self, moment: "_Moment") -> Learner:
        learner = self.learner()
        moment.put_into(learner)
        return learner

    def firsts(self) -> "Iterator[Round]":
        """The run before the first merge of each exchange."""
        known = set()
        for one in self.rounds():
            if one.need.exchange not in known:
                known.add(one.need.exchange)
                yield one


class _Moment(NamedTuple):
    """The versions and the states, each with the job that wrote it, of a learner between two merges."""

    versions: dict[int, Tree]
    states: dict[int, tuple[int, Tree | None]]

    @classmethod
    def of(cls, learner: Learner) -> "_Moment":
        """A learner's; copies."""
        states = learner.context.states
        written = {client: (states.job(client), copied(states.get(client))) for client in states.clients()}
        return cls(copied(learner.context.versions), written)

    def put_into(self, learner: Learner) -> None:
        """Gives a new learner copies: methods under check may write to what they are given."""
        learner.context.versions = copied(self.versions)
        for client, (job, state) in self.states.items():
            if state is not None:
                learner.context.states.put(client, job, copied(state))


@dataclass(frozen=True)
class Round:
    """A run before a merge; its learner has the versions and states of that moment."""

    learner: Learner
    need: Merge

    @property
    def name(self) -> str:
        return self.need.exchange

    @property
    def exchange(self) -> Exchange:
        """The exchange of the server's model."""
        return self.of(self.learner.context.builder.learning.methods[0])

    def of(self, method: Method) -> Exchange:
        """A method's exchange of this name."""
        return next(each for each in method.exchanges if each.name == self.name)

    @property
    def server(self) -> Tree:
        return self.learner.context.versions[self.need.version - 1]

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        return tuple(self.learner.context.group([job]).tasks[0] for job in self.need.merged)

    def arrivals(self) -> list[Arrival]:
        """What the clients send, trained one by one."""
        return [
            Arrival(loop.work(task).upload, task.payload, task.ctx, 0, weight)
            for task, weight in zip(self.tasks, self.need.weights, strict=True)
        ]


def last_version(learner: Learner) -> Tree:
    """The server's state after the last merge."""
    versions = learner.context.versions
    return versions[max(versions)]


class Call(NamedTuple):
    """A call of a method's function, as a run makes it.

    Attributes:
        name: the function's name and its exchange's.
        kept: those of the tensors that are around which it must not change, by name.
        pick: the same function of the same exchange of another method.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    kept: dict[str, Tree]
    pick: Callable[[Exchange], Callable[..., Any]]


def calls(one: Round) -> Generator[Call, Any, None]:
    """Every function of an exchange, called for one client; is sent what the function returned."""
    (task, *others), name, fold = one.tasks, one.name, one.tasks[0].fold
    server = {"server state": one.server}
    down = one.learner.context.builder.exchange(task.job).down
    yield Call(f"{name}'s down", down, (one.server, task.job.client), server, lambda each: each.down)
    # A payload may be made of the server state's own tensors.
    own = {"payload": task.payload, "client state": task.state or {}, "ctx": task.ctx.class_counts, **server}
    given = (task.payload, task.state, task.ctx)
    carry = yield Call(f"{name}'s start", fold.start, given, own, lambda each: each.work.start)
    for place, phase in enumerate(fold.phases):
        batch = next(iter(task.batches(phase)), None)
        if batch is not None:
            kept = {"batch": dict(batch._asdict()), **own}
            carry = yield Call(
                f"{phase.name}'s step", phase.step, (carry, batch), kept, partial(_step, place)
            )
    finish = fold.finish
    upload, _ = yield Call(f"{name}'s finish", finish, (carry, task.ctx), own, lambda each: each.work.finish)
    uploads = [upload, *(loop.work(other).upload for other in others)]
    arrivals = [
        Arrival(sent, each.payload, each.ctx, 0, weight)
        for sent, each, weight in zip(uploads, one.tasks, one.need.weights, strict=True)
    ]
    merge = torch.no_grad()(one.exchange.merge)
    kept = {**server, "upload": upload, **own}
    yield Call(f"{name}'s merge", merge, (one.server, arrivals), kept, lambda each: each.merge)


def _step(place: int, exchange: Exchange) -> Callable[..., Any]:
    return exchange.work.phases[place].step


def driven(found: Generator[Call, Any, None], look: Callable[[Call], tuple[Any, T | None]]) -> T | None:
    """The first that is found among calls.

    ``look`` makes a call; it returns what the function returned, and what is found if anything is.
    """
    result: Any = None
    with suppress(StopIteration):
        while True:
            result, what = look(found.send(result))
            if what is not None:
                return what
    return None


def copied(value: Any) -> Any:
    """A value whose tensors are copies; of a dataclass, the value itself."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in value.items()}
    if isinstance(value, Batch):
        return Batch(*map(copied, value))
    return [copied(inner) for inner in value] if type(value) is list else value


def differences(tree: Tree, other: Tree, equal: Callable[[Tensor, Tensor], bool]) -> list[str]:
    """The paths of leaves that only one tree has, or that differ."""
    first, second = flatten(tree), flatten(other)
    both = first.keys() & second.keys()
    return [key for key in {**first, **second} if key not in both or not equal(first[key], second[key])]


def identical(leaf: Tensor, other: Tensor) -> bool:
    """Equal to the bit."""
    alike = leaf.dtype == other.dtype and leaf.device == other.device
    return alike and torch.equal(leaf, other)


def close(leaf: Tensor, other: Tensor) -> bool:
    """Equal up to rounding, and finite."""
    return leaf.shape == other.shape and torch.allclose(leaf, other, rtol=1e-4, atol=1e-5)


def same(one: Any, other: Any) -> bool:
    """Whether two results are equal to the bit."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return identical(one.nan_to_num(), other.nan_to_num())
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) if isinstance(one, int | float | str) else type(one) is type(other)
