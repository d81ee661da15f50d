"""What a run would take: limits that would never be met, totals that no counter holds, and a long clock."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from edgefl.core.errors import ScenarioError
from edgefl.core.notes import note
from edgefl.core.plan import Plan
from edgefl.core.scenario import Server
from edgefl.core.units import show_seconds

# Assumed of the clock: measured by benchmarks/world.py, and of rounds of a job or none, on one core.
_JOBS_PER_S = 200_000
_ROUNDS_PER_S = 3_000
_LONG_S = 60.0
_DAY_S = 86_400.0

_COUNTED = {"flops": "operations", "down_bytes": "bytes down", "up_bytes": "bytes up"}
_MOST = 2**63 - 1


def check_limits(plan: Plan) -> None:
    """Rounds end at some time.

    Raises:
        ScenarioError: traffic or energy alone limit the rounds, and no client's rounds add to them.
    """
    until = plan.scenario.server.until
    clients = plan.clients
    if until.rounds is not None or until.time is not None or not clients.admitted.any():
        return
    kinds = np.unique(clients.kind[clients.admitted])
    rounds = [prices for prices in plan.prices if prices.at == "round"]
    moved = any((one.down_bytes[kinds] + one.up_bytes[kinds]).any() for one in rounds)
    # A client's energy counts if it is known in all exchanges.
    powers = [np.stack((one.idle_w, one.compute_w, one.radio_w))[:, kinds] for one in plan.prices]
    known = (~np.isnan(np.concatenate(powers))).all(axis=0).any()
    if (until.bytes is not None and moved) or (until.energy is not None and known):
        return
    reason = "no client's energy is known" if until.energy is not None else "the method sends nothing"
    raise ScenarioError(
        f"the rounds would never end: {reason}",
        where="server.until",
        hint="give rounds or time too",
    )


def _size(plan: Plan) -> tuple[float, dict[str, float]]:
    """About how many rounds a plan with clients has, or merges without rounds, and how many jobs by exchange.

    As its limits of rounds and of time say; inf where none does.
    """
    server, policy, clients = plan.scenario.server, plan.policy, float(plan.clients.admitted.sum())
    asked = min(clients, asked_at_once(server, policy) or clients)
    # An asynchronous policy merges what has arrived from those that are at work.
    merged = getattr(policy, "buffer", 1.0) if hasattr(policy, "concurrency") else asked
    rounds = float(server.until.rounds or math.inf)
    each_round = [prices for prices in plan.prices if prices.at == "round"]
    if server.until.time is not None and each_round:
        demands = [prices.demand(plan.clients.kind[plan.clients.admitted]) for prices in each_round]
        job_s = float(np.mean([np.mean(one.down_s + one.work_s + one.up_s) for one in demands]))
        length_s = getattr(policy, "interval", None) or job_s * merged / asked
        length_s = min(length_s, getattr(policy, "seconds", None) or math.inf)
        rounds = min(rounds, server.until.time / max(length_s, 1e-12))
    return rounds, {
        prices.exchange: rounds / prices.every * (clients if prices.everyone else merged)
        if prices.at == "round"
        else clients
        for prices in plan.prices
    }


def asked_at_once(server: Server, policy: Any) -> int | None:
    """How many clients are asked for a round, or kept at work by a stream; None for all."""
    asked = getattr(policy, "concurrency", None) or server.participants
    # Rounded as ``World.invite`` does.
    return None if asked is None else max(1, int(asked * getattr(policy, "factor", 1.0)))


def check_size(plan: Plan) -> None:
    """Totals fit into 64 bits; a note says how long the clock takes if that is more than a minute.

    Raises:
        ScenarioError: the operations or bytes of all jobs together do not fit.
    """
    if not plan.clients.admitted.any():
        return
    rounds, by_exchange = _size(plan)
    # Of other limits it is not known how many rounds they let through.
    only_rounds = plan.scenario.server.until.model_dump(exclude_none=True).keys() == {"rounds"}
    admitted = np.unique(plan.clients.kind[plan.clients.admitted])
    for name, words in _COUNTED.items():
        each = {prices.exchange: float(getattr(prices, name)[admitted].max()) for prices in plan.prices}
        total = sum(jobs * each[exchange] for exchange, jobs in by_exchange.items())
        if only_rounds and total > _MOST:
            raise ScenarioError(
                f"all jobs have about {total:.2g} {words}; the most that can be counted is {_MOST:.2g}",
                where="local" if name == "flops" else "server",
                hint="lower the epochs or steps, or the rounds",
            )
    jobs = sum(by_exchange.values())
    seconds = jobs / _JOBS_PER_S + rounds / _ROUNDS_PER_S
    if math.isfinite(seconds) and seconds > _LONG_S:
        long = f"{seconds / _DAY_S:,.0f} days" if seconds > 2 * _DAY_S else show_seconds(seconds)
        note(
            f"{plan.scenario.name}: the clock alone takes about {long}, for {rounds:.2g} rounds with "
            f"{jobs:.2g} jobs (assumed: {_ROUNDS_PER_S:,} rounds and {_JOBS_PER_S:,} jobs a second)"
        )
