"""Runs the world as a generator: it keeps time, its caller learns.

It steps SimPy until the server needs something, yields the ``Need`` and is sent the ``Feedback``; the answer
takes no virtual time. The driver runs the exchanges at the start and at the end; the policy runs the rounds.
"""

import gc
import math
import re
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import numpy as np
import simpy

from edgefl.core.errors import EdgeflError, RunError
from edgefl.core.event import ServerEvent
from edgefl.core.plan import Plan
from edgefl.core.user_code import defined_at, explained
from edgefl.world.clock import LATER, Process, ProcessError
from edgefl.world.ledger import Ledger
from edgefl.world.needs import Feedback, Need
from edgefl.world.world import World


class Ended(NamedTuple):
    """How the rounds ended.

    Attributes:
        by: which of ``server.until`` ended them.
        t_s: virtual seconds when all was over.
    """

    by: str
    rounds: int
    t_s: float


def _forget(_: Any) -> None:
    """Takes an event or jobs and does nothing."""


def simulate(
    plan: Plan,
    emit: Callable[[ServerEvent], None] = _forget,
    ended: Callable[[np.ndarray], None] = _forget,
    *,
    settled: Callable[[np.ndarray], None] = _forget,
    at_least: int = 1,
    ledger: Ledger | None = None,
) -> Generator[Need, Feedback, Ended]:
    """Runs a plan in virtual time.

    Jobs that are still in flight when the rounds are over, or when the caller closes the generator, are cut.

    Args:
        emit: called with the server's events, in order.
        ended: called with jobs that ended, as rows of ``edgefl.core.event.JOB``.
        settled: called at the end with the tails of radios that are open, as rows of
            ``edgefl.core.event.TAIL``.
        at_least: with how many jobs at a time, before the next need if it is 1; fewer at the end and
            wherever they are needed. Large numbers take less time.
        ledger: takes what jobs that ended cost; None for one of the world's own.

    Yields:
        What the server needs; send a ``Feedback`` to each.

    Raises:
        RunError: the server waits and nothing more can happen, or the policy does what it must not.
    """
    world = World(plan, emit, ended, settled=settled, at_least=at_least, ledger=ledger)
    world.refuse()
    server = world.env.process(_serve(world))
    interrupted = False
    try:
        while server.is_alive and world.env.peek() < math.inf:
            try:
                world.env.step()
            except BaseException as error:  # noqa: BLE001 - a policy of the user's own may raise anything
                interrupted = not isinstance(error, Exception)
                raise _explained(error, plan) from None
            while world.needs:
                need, answered = world.needs.popleft()
                feedback = yield need
                answered.succeed(feedback)
    finally:
        # Its error is raised below.
        server.defused = True
        # An interrupt may have come half-way through any change.
        if not interrupted:
            world.close()
    result = server.value if server.triggered else None
    if isinstance(result, BaseException):
        raise _explained(result, plan)
    if server.is_alive:
        raise RunError(
            f"the run is stuck: nothing can happen after {world.env.now:.6g} s of virtual time",
            where=f"policy {plan.scenario.server.policy.name}",
            hint="it waits for an event that nothing triggers, or a slowdown or jitter is infinite",
        )
    return Ended(world.stopped or "", world.round, world.now_s)


def _explained(error: BaseException, plan: Plan) -> BaseException:
    """A process's error as its reader needs it: our own as it was raised, a user's with its file and line."""
    # SimPy raises a copy, without place and hint; the original is its cause.
    cause = error.__cause__
    if cause is not None and (isinstance(error, ProcessError) or type(cause) is type(error)):
        return _explained(cause, plan)
    if isinstance(error, RuntimeError) and (value := _NO_EVENT.search(str(error))):
        return RunError(
            f"the policy yields {value[1]}, which is not an event",
            where=_policy_at(plan),
            hint="yield events, such as world.ended(jobs), and call generators with yield from",
        )
    return error if isinstance(error, EdgeflError) else explained(error, RunError) or error


def _policy_at(plan: Plan) -> str:
    return str(defined_at(plan.scenario.server.policy.serve) or f"policy {plan.scenario.server.policy.name}")


# SimPy's words.
_NO_EVENT = re.compile(r'Invalid yield value "(.*)"$')


def _serve(world: World) -> Process:
    """A SimPy process: exchanges before the rounds, the policy's rounds, exchanges after them."""
    plan = world.plan
    for prices in plan.prices:
        if prices.at == "start":
            yield from world.collect(prices)
    world.round = 0
    rounds = plan.scenario.server.policy.serve(world)
    if not isinstance(rounds, Generator):
        raise RunError("serve is not a generator", where=_policy_at(plan), hint="it has no yield")
    limit_s = plan.scenario.server.until.time
    if limit_s is None:
        yield from rounds
    elif (yield from _until(world, rounds, limit_s)):
        world.stopped = "time"
        yield world.cut()
        yield from world.evaluate()
    if world.serving:
        raise RunError(
            f"the policy ended after {world.round} rounds, before the scenario's limit",
            where=f"policy {plan.scenario.server.policy.name}",
            hint="loop while world.serving, and end each round with: yield from world.end_round()",
        )
    after = [prices for prices in plan.prices if prices.at == "end"]
    if after:
        # Clients have time for the last exchanges; nothing else will be merged.
        yield world.cut()
    for prices in after:
        yield from world.collect(prices)
    if after:
        yield from world.evaluate()


def _until(
    world: World, rounds: Generator[simpy.Event, Any, Any], limit_s: float
) -> Generator[simpy.Event, Any, bool]:
    """The rounds up to a time; returns whether they were broken off."""
    policy = world.env.process(rounds)
    yield policy | world.env.at(limit_s, LATER)
    if not policy.is_alive:
        return False
    rounds.close()
    # Nobody waits for it any more.
    policy.defused = True
    return True


def converse(world: Generator[Need, Feedback, Ended], answer: Callable[[Need], Feedback]) -> Ended:
    """Runs a world to its end and answers each need."""
    feedback: Any = None
    # Collections of garbage would go through all that was planned, again and again: a third of the time.
    gc.freeze()
    try:
        while True:
            try:
                need = world.send(feedback)
            except StopIteration as stop:
                ended: Ended = stop.value
                return ended
            # Answered outside the inner try: a StopIteration of the caller's own does not end the world.
            feedback = answer(need)
    finally:
        world.close()
        gc.unfreeze()
