"""The contract that every method promises to keep, checked on digits with four clients.

The method is run through the same planning, clock and learner as any run; nothing is saved.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from edgefl.compute import loop
from edgefl.compute.job import Outcome
from edgefl.compute.local import Local
from edgefl.compute.threads import one_thread
from edgefl.compute.vmapped import Vmapped
from edgefl.core.errors import EdgeflError
from edgefl.core.event import Event, Job
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import Planned, plan
from edgefl.protocol import Arrival, Tree, bytes_by_part, flatten, tree_map
from edgefl.runs.group import drafts
from edgefl.runs.learner import Learner
from edgefl.runs.states import States
from edgefl.world.driver import Feedback, Merge, Need, converse, simulate


class Finding(NamedTuple):
    """One promise.

    Attributes:
        promise: what it says.
        kept: whether it is kept; None where the method does not make it.
        detail: how it is broken, or why it is not made; empty where it is kept.
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
    """A check's finding; an exception that the method raises is a broken promise."""
    try:
        detail = check(planned)
    except EdgeflError as error:
        detail = error.what
    except Exception as error:  # noqa: BLE001 - the method under test may raise anything
        detail = f"{type(error).__name__}: {error}"
    return Finding(promise, not detail, detail)


def _merges(planned: Planned) -> Iterator[tuple[str, tuple[Job, ...]]]:
    """Every merge of the run, by its exchange and jobs."""
    found: list[Merge] = []

    def answer(need: Need) -> Feedback:
        if isinstance(need, Merge):
            found.append(need)
        return Feedback()

    def ignore(event: Event) -> None:
        del event

    converse(simulate(planned.plan, ignore), answer)
    return ((need.exchange, need.merged) for need in found)


def _learner(planned: Planned) -> Learner:
    """A learner with the reference engine and all states in memory."""
    learner = Learner(planned, States(None, 0))
    learner.engine = Local(learner, loop.Loop(), ahead=False)
    return learner


def _learned(planned: Planned) -> Learner:
    """A learner after all merges of the run."""
    learner = _learner(planned)
    for version, (exchange, jobs) in enumerate(_merges(planned), start=1):
        learner.merge(version, exchange, jobs)
    return learner


def _bytes(planned: Planned) -> str:
    learner = _learner(planned)
    for version, (exchange, jobs) in enumerate(_merges(planned), start=1):
        (task,) = learner.group(jobs[:1]).tasks
        trace = planned.plan.price(exchange).traces[0]
        upload = loop.work(task).upload
        for way, traced, real in (("down", trace.down, task.payload), ("up", trace.up, upload)):
            if dict(traced) != bytes_by_part(real):
                return f"{exchange}, {way}: traced {dict(traced)}, real {bytes_by_part(real)}"
        learner.merge(version, exchange, jobs)
    return ""


def _unmodified(planned: Planned) -> str:
    learner = _learner(planned)
    for version, (exchange, jobs) in enumerate(_merges(planned), start=1):
        (task,) = learner.group(jobs[:1]).tasks
        given = {
            "server state": learner.versions[version - 1],
            "payload": task.payload,
            "client state": task.state or {},
        }
        before = {name: tree_map(torch.clone, tree) for name, tree in given.items()}
        learner.merge(version, exchange, jobs)
        for name, tree in given.items():
            if not _same(tree, before[name]):
                return f"{exchange} changes its {name}"
    return ""


def _order(planned: Planned) -> str:
    learner = _learner(planned)
    method = planned.learning.methods[0]
    for version, (name, jobs) in enumerate(_merges(planned), start=1):
        exchange = next(one for one in method.exchanges if one.name == name)
        tasks = [learner.group([job]).tasks[0] for job in jobs]
        with torch.no_grad(), one_thread():
            server = learner.versions[version - 1]
            arrivals = [Arrival(outcome.upload, task.ctx) for task, outcome in _worked(tasks)]
            forth, back = exchange.merge(server, arrivals), exchange.merge(server, arrivals[::-1])
        if not _close(forth, back):
            return f"{name} merges another state from the same arrivals in another order"
        learner.merge(version, name, jobs)
    return ""


def _worked(tasks: list[Any]) -> Iterator[tuple[Any, Any]]:
    with torch.enable_grad():
        done = [(task, loop.work(task)) for task in tasks]
    return iter(done)


def _repeatable(planned: Planned) -> str:
    first, second = _learned(planned), _learned(planned)
    last = max(first.versions)
    if not _same(first.versions[last], second.versions[last]):
        return "two runs on one seed end with different server states"
    for client in first.states.clients():
        if not _same(first.states.get(client), second.states.get(client)):
            return f"two runs on one seed leave client {client} with different states"
    return ""


def _together(planned: Planned) -> str:
    """Stacked with clients of other sample counts, a client has the same upload and state as alone."""
    learner = _learner(planned)
    stacked = Local(learner, Vmapped(planned.plan.scenario.task.clients, sys.maxsize), ahead=False)
    for version, (exchange, jobs) in enumerate(_merges(planned), start=1):
        alone = {outcome.job: outcome for outcome in learner.engine.outcomes(jobs)}
        for outcome in stacked.outcomes(jobs):
            expected, found = _numbers(alone[outcome.job]), _numbers(outcome)
            same = {key for key in expected.keys() & found.keys() if _near(expected[key], found[key])}
            apart = [key for key in {**expected, **found} if key not in same]
            if apart:
                return f"{exchange}: client {outcome.job.client} ends with another {apart[0]}"
        learner.merge(version, exchange, jobs)
    return ""


def _numbers(outcome: Outcome) -> dict[str, torch.Tensor]:
    """A job's results."""
    scalars = {name: torch.tensor(value) for name, value in outcome.scalars.items()}
    return flatten({"upload": outcome.upload, "state": outcome.state or {}, "scalars": scalars})


def _near(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal up to rounding errors that add up over many steps."""
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-3, atol=1e-4)


def _predicts(planned: Planned) -> str:
    learner = _learned(planned)
    found, own = learner.evaluate(max(learner.versions))
    scores = [("global", found.loss)] if found else []
    scores += [("personal", own.loss)] if own else []
    broken = [name for name, loss in scores if not torch.isfinite(torch.as_tensor(loss)).all()]
    return f"the {broken[0]} model's logits are not finite" if broken else ""


def _neutral(planned: Planned) -> Finding:
    """The promise of methods that have neutral parameters."""
    neutral = planned.learning.methods[0].neutral
    promise = "equals FedAvg bit for bit at neutral parameters"
    if neutral is None:
        return Finding(promise, None, "the method has no neutral parameters")
    name = planned.plan.scenario.method.name

    def check(_: Planned) -> str:
        one, other = _learned(_planned({"name": name, **neutral})), _learned(_planned({"name": "fedavg"}))
        return (
            ""
            if _same(one.versions[max(one.versions)], other.versions[max(other.versions)])
            else f"not at {neutral}"
        )

    return _finding(promise, check, planned)


def _same(one: Tree, other: Tree) -> bool:
    """Equal names, shapes, types and bits."""
    first, second = flatten(one), flatten(other)
    return first.keys() == second.keys() and all(
        leaf.dtype == second[key].dtype and torch.equal(leaf, second[key]) for key, leaf in first.items()
    )


def _close(one: Tree, other: Tree) -> bool:
    """Equal up to rounding, and finite."""
    first, second = flatten(one), flatten(other)
    return first.keys() == second.keys() and all(
        torch.allclose(leaf, second[key], rtol=1e-4, atol=1e-5) for key, leaf in first.items()
    )
