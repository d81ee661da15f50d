"""Runs the world as a generator: it keeps time, its caller learns.

It steps SimPy until the server needs something, yields the ``Need`` and is sent the ``Feedback``; the answer
takes no virtual time. The driver runs the exchanges at the start and at the end; the policy runs the rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any

import simpy

from edgefl.core.catalogue import load
from edgefl.core.errors import EdgeflError, RunError
from edgefl.core.event import Event, JobRecord
from edgefl.core.plan import Plan
from edgefl.world.needs import Feedback, Need
from edgefl.world.world import World


def _forget(record: JobRecord) -> None:
    """Takes a job and does nothing."""


def simulate(
    plan: Plan, emit: Callable[[Event], None], ended: Callable[[JobRecord], None] = _forget
) -> Generator[Need, Feedback, None]:
    """Runs a plan in virtual time.

    Jobs that are still in flight when the rounds are over, or when the caller closes the generator, are cut.

    Args:
        plan: the plan.
        emit: called with every event, in order.
        ended: called with every job when it ends.

    Yields:
        What the server needs; send a ``Feedback`` to each.

    Raises:
        RunError: the server waits and nothing more can happen, or the policy does what it must not.
    """
    world = World(plan, emit, ended)
    world.refuse()
    server = world.env.process(_serve(world))
    try:
        while server.is_alive and world.env.peek() < math.inf:
            _step(world.env)
            while world.needs:
                need, answered = world.needs.popleft()
                feedback = yield need
                answered.succeed(feedback)
    finally:
        world.cut()
    error = server.value if server.triggered else None
    if isinstance(error, BaseException):
        raise error
    if server.is_alive:
        raise RunError(
            f"the server waits forever: nothing happens after {world.env.now:.6g} s of virtual time",
            where=f"policy {plan.scenario.server.policy.name}",
            hint="check that no slowdown or jitter is infinite",
        )


def _step(env: simpy.Environment) -> None:
    try:
        env.step()
    except EdgeflError as error:
        # SimPy raises a copy of a process's error, which has no place and no hint.
        raise error.__cause__ if isinstance(error.__cause__, EdgeflError) else error from None


def _serve(world: World) -> Generator[simpy.Event, Any, None]:
    """A SimPy process: exchanges before the rounds, the policy's rounds, exchanges after them."""
    plan = world.plan
    for prices in plan.prices:
        if prices.at == "start":
            yield from world.collect(prices)
    world.round = 0
    policy = load("policies", plan.scenario.server.policy.name)
    yield from policy.serve(world, plan.policy)
    after = [prices for prices in plan.prices if prices.at == "end"]
    if after:
        # Clients have time for the last exchanges; nothing else will be merged.
        world.cut()
    for prices in after:
        yield from world.collect(prices)
    if after:
        yield from world.evaluate()


def converse(world: Generator[Need, Feedback, None], answer: Callable[[Need], Feedback]) -> None:
    """Runs a world to its end and answers each need."""
    try:
        need = next(world, None)
        while need is not None:
            # Answered outside the inner try: a StopIteration of the caller's own does not end the world.
            feedback = answer(need)
            try:
                need = world.send(feedback)
            except StopIteration:
                return
    finally:
        world.close()
