"""Synchronous rounds: the server asks some clients, waits for all of them, merges, and goes on.

The cohort of a round is drawn uniformly without replacement (McMahan et al. 2017, Algorithm 1). Merging and
evaluating take no virtual time: the server is not what is studied.
"""

from __future__ import annotations

import simpy

from edgefl.core import seeds
from edgefl.core.params import Strict
from edgefl.core.plan import Prices
from edgefl.world.driver import World


class Params(Strict):
    """Synchronous rounds have no parameters of their own."""


def serve(world: World, params: Params) -> simpy.events.ProcessGenerator:  # noqa: ARG001 - every policy is asked the same way
    """A SimPy process: exchanges before the rounds, the rounds, exchanges after them."""
    plan, rounds = world.plan, world.plan.scenario.server.rounds
    for prices in plan.prices:
        if prices.at == "start":
            yield from exchange(world, prices, -1)
    for round_ in range(rounds):
        for prices in plan.prices:
            if prices.at == "round" and (round_ + 1) % prices.every == 0:
                yield from exchange(world, prices, round_)
        if (round_ + 1) % plan.scenario.evaluate.every == 0 or round_ + 1 == rounds:
            yield from world.evaluate(round_)
    after = [prices for prices in plan.prices if prices.at == "end"]
    for prices in after:
        yield from exchange(world, prices, rounds)
    if after:
        yield from world.evaluate(rounds)


def exchange(world: World, prices: Prices, round_: int) -> simpy.events.ProcessGenerator:
    """One exchange with its cohort: a barrier, then a merge."""
    cohort = world.clients if prices.everyone else _cohort(world, round_)
    jobs = [world.job(prices.exchange, client, round_) for client in cohort]
    yield world.env.all_of([world.env.process(world.work(job)) for job in jobs])
    yield from world.merge(prices.exchange, jobs, round_)


def _cohort(world: World, round_: int) -> list[int]:
    wanted = world.plan.scenario.server.participants or len(world.clients)
    if wanted >= len(world.clients):
        return world.clients
    rng = seeds.generator(world.plan.scenario.seed, "cohort", nth=round_)
    return [
        world.clients[index]
        for index in sorted(rng.choice(len(world.clients), wanted, replace=False).tolist())
    ]
