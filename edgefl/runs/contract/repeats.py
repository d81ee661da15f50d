"""What does not depend on when, how often or beside whom it is called, nor on data where it must not."""

import inspect
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgefl.compute.job import Local, Outcome
from edgefl.compute.process import one_thread
from edgefl.compute.vmapped import Vmapped
from edgefl.core.errors import UserError
from edgefl.protocol import Exchange, Tree, chance
from edgefl.runs.contract.findings import Broken, parts, place
from edgefl.runs.contract.setting import (
    Call,
    Setting,
    calls,
    copied,
    differences,
    driven,
    identical,
    last_version,
    same,
)


def runs(setting: Setting) -> None:
    """A run gets to its end."""
    try:
        setting.ended()
    except Exception:
        # Tensors without data, kept since planning, are told as such.
        if forgetful(setting) is None:
            raise


def repeatable(setting: Setting) -> Broken | None:
    """No function draws numbers of its own, and two runs of one seed are equal."""
    for one in setting.rounds():
        with one_thread():
            found = driven(calls(one), _drawn)
        if found is not None:
            return found
    learner, other = setting.ended(), setting.learned()
    if differences(last_version(learner), last_version(other), identical):
        return Broken("two runs with one seed end with different server states", _functions(setting))
    states, others = learner.context.states, other.context.states
    for client in states.clients():
        if differences(states.get(client), others.get(client), identical):
            what = f"two runs with one seed leave client {client} with different states"
            return Broken(what, _functions(setting))
    return None


def _functions(setting: Setting) -> tuple[Callable[..., Any], ...]:
    """What could differ between runs and not between calls for the first client."""
    found: list[Callable[..., Any]] = []
    for exchange in setting.built.exchanges:
        work = exchange.work
        found += [
            exchange.down,
            work.start,
            *(phase.step for phase in work.phases),
            work.finish,
            exchange.merge,
        ]
    return tuple(found)


def _drawn(call: Call) -> tuple[Any, Broken | None]:
    """Whether a call's result depends on generators that a program seeds, or on ones that nobody does."""
    first, other, again = (_seeded(seed, call.function, call.arguments) for seed in (1, 2, 1))
    if not (same(first, again) and same(first, other)):
        what = f"{call.name} draws random numbers that do not come from the run's seed"
        return None, Broken(what, (call.function,), "methods use no random numbers; see docs/extending.md")
    return call.function(*call.arguments), None


def _seeded(seed: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """What a function returns for copies of arguments, after seeding every generator it could draw from.

    What the model draws comes from its step, as in a run.
    """
    with _seeds(seed), chance.training() as at:
        at([0], 0, [0])
        return function(*map(copied, arguments))


@contextmanager
def _seeds(seed: int) -> Iterator[None]:
    """Seeds the generators of torch, NumPy and Python, and puts them back."""
    numbers, words = np.random.get_state(), random.getstate()  # noqa: NPY002 - the one that a user may use
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - as above
        random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(numbers)  # noqa: NPY002 - as above
            random.setstate(words)


def forgetful(setting: Setting) -> Broken | None:
    """A function that was called before returns what it would in a new process."""
    for one in setting.rounds():
        new, newer = one.of(setting.anew()), one.of(setting.anew())

        def kept(call: Call, new: Exchange = new, newer: Exchange = newer) -> tuple[Any, Broken | None]:
            other = call.pick(new)
            if _as_new(call, other, call.pick(newer)):
                return call.function(*call.arguments), None
            names = ", ".join(_changed(call.function, other)) or "something"
            what = f"{call.name} returns something else than in a new process: {names} is kept between calls"
            return None, Broken(what, (call.function,), "put it into the carry or into a state")

        with one_thread():
            found = driven(calls(one), kept)
        if found is not None:
            return found
    return None


def _as_new(call: Call, *others: Callable[..., Any]) -> bool:
    """Whether a call does what the same function does in two new processes, if that is one thing."""
    fresh, again = (_seeded(1, other, call.arguments) for other in others)
    if not same(fresh, again):
        return True
    try:
        return same(_seeded(1, call.function, call.arguments), fresh)
    except RuntimeError:
        # Of tensors without data, which are left from planning.
        return False


_DATA = (int, float, list, dict, set, Tensor)


def _changed(function: Callable[..., Any], new: Callable[..., Any]) -> list[str]:
    """The names of the data that a user's function finds around it, and that differ in a new process."""
    blamed = place([function])
    for one, other in zip(parts(function), parts(new), strict=False):
        code = getattr(inspect.unwrap(one), "__code__", None)
        if blamed is None or code is None or code.co_firstlineno != blamed.line:
            continue
        around, others = _around(one), _around(other)
        return [name for name in around if repr(around[name]) != repr(others.get(name))]
    return []


def _around(function: Callable[..., Any]) -> dict[str, Any]:
    found = inspect.getclosurevars(inspect.unwrap(function))
    both = {**found.globals, **found.nonlocals}
    return {name: value for name, value in both.items() if isinstance(value, _DATA)}


def together(setting: Setting) -> Broken | None:
    """A client has the same upload and state alone as stacked with clients of other sample counts.

    In double precision: in single, a rounding error that moves one activation across ReLU's kink grows within
    an epoch to a hundredth of what was trained, and whether one does depends on the processor. A method that
    makes tensors of single precision itself, and cannot run with others, is compared in that.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return _together(Setting(setting.method, setting.overrides))
    except (RuntimeError, UserError):
        pass
    finally:
        torch.set_default_dtype(before)
    return _together(setting)


def _together(setting: Setting) -> Broken | None:
    vmapped = Vmapped(setting.planned.plan.scenario.task.clients, sys.maxsize)
    for one in setting.rounds():
        learner, jobs = one.learner, one.need.merged
        stacked = Local(learner.context, vmapped, ahead=False)
        alone = {outcome.job: outcome for outcome in learner.engine.outcomes(jobs)}
        work = learner.context.builder.exchange(jobs[0]).work
        steps: list[Callable[..., Any]] = [phase.step for phase in work.phases]
        for outcome in stacked.outcomes(jobs):
            found = differences(_results(alone[outcome.job]), _results(outcome), _near)
            if found:
                what = f"{one.name}: client {outcome.job.client} has another {found[0]}"
                return Broken(what, (work.start, *steps, work.finish))
    return None


def _results(outcome: Outcome) -> Tree:
    scalars: Mapping[str, Tensor] = {name: torch.tensor(value) for name, value in outcome.scalars.items()}
    return {"upload": outcome.upload, "state": outcome.state or {}, "scalars": scalars}


def _near(leaf: Tensor, other: Tensor) -> bool:
    """Equal up to rounding errors that add up over many steps."""
    return leaf.shape == other.shape and torch.allclose(leaf, other, rtol=1e-3, atol=1e-4)
