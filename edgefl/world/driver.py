"""The world as a generator: it knows time, the caller knows learning.

It steps SimPy until the server needs something, yields the ``Need``, and is sent the ``Feedback`` in zero
virtual time. The driver runs the exchanges at the start and at the end; the rounds in between are the
policy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any

import simpy

from edgefl.core.catalogue import load
from edgefl.core.errors import RunError
from edgefl.core.event import Event, JobRecord
from edgefl.core.plan import Plan
from edgefl.world.needs import Feedback, Need
from edgefl.world.world import World


def _forget(record: JobRecord) -> None:
    """Nobody asked for jobs."""


def simulate(
    plan: Plan, emit: Callable[[Event], None], ended: Callable[[JobRecord], None] = _forget
) -> Generator[Need, Feedback, None]:
    """Runs a plan in virtual time.

    The run ends with the server's last exchange; jobs that are still in flight then, or when the caller
    closes the generator, are cut.

    Args:
        plan: the plan.
        emit: is called with every event, in order.
        ended: is called with every job, once, when it ends.

    Yields:
        What the server needs of the caller; each is to be answered with a ``Feedback``.

    Raises:
        RunError: nothing more can happen, and the server still waits.
    """
    world = World(plan, emit, ended)
    world.refuse()
    server = world.env.process(_serve(world))
    try:
        while server.is_alive and world.env.peek() < math.inf:
            world.env.step()
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
            f"the run is stuck: nothing can happen after {world.env.now:.6g} s of virtual time",
            where=f"policy {plan.scenario.server.policy.name}",
            hint="it waits for an event that nothing triggers, or a slowdown or jitter drew an infinite time",
        )


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
    for prices in after:
        yield from world.collect(prices)
    if after:
        yield from world.evaluate()


def converse(world: Generator[Need, Feedback, None], answer: Callable[[Need], Feedback]) -> None:
    """Runs a world to its end, answering each need as it comes."""
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
