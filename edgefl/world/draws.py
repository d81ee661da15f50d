"""What chance decides of jobs: drawn for many clients at once, ahead of their jobs.

A draw is a hash of the seed, the exchange, the client and the number of its job (``edgefl.core.draws``): it
does not depend on when it is drawn.
"""

from typing import NamedTuple

import numpy as np

from edgefl.core.arrays import Floats, Ints
from edgefl.core.draws import derive, uniforms
from edgefl.core.fleet import Fleet
from edgefl.core.plan import Plan
from edgefl.core.samplers.fixed import Params as Fixed

_HOUR_S = 3600.0


def jitters(fleet: Fleet, root: int, exchange: str, clients: Ints, nth: Ints) -> Floats | float:
    """How many times as long the work of clients' n-th jobs in an exchange takes by chance; both (n,)."""
    if isinstance(fleet.jitter, Fixed):
        return fleet.jitter.value
    found: Floats = fleet.jitter.draw(uniforms(derive(root, "jitter", exchange=exchange), clients, nth))
    return found


class Drawn(NamedTuple):
    """What is drawn for a job.

    Attributes:
        nth: its number among its client's jobs in the exchange.
        factor: its work takes as many times as long, by slowdown and jitter.
        sends: how often its upload would have to be sent until it arrives without errors.
        crashes_at: the share of its work after which its device crashes; infinite for never.
        lives_s: after so many seconds its device crashes, whatever it does; infinite for never.
    """

    nth: float
    factor: float
    sends: float
    crashes_at: float
    lives_s: float


class Ahead:
    """The draws of each client's next job in an exchange.

    Those whose jobs were taken are drawn again together, when the first of them is asked again.
    """

    def __init__(self, plan: Plan, exchange: str) -> None:
        self._fleet, self._slowdown = plan.fleet, plan.clients.slowdown
        self._root, self._exchange = plan.scenario.seed, exchange
        self._nth = np.zeros(len(plan.clients), dtype=np.int64)
        self._next = np.empty((len(plan.clients), len(Drawn._fields)))
        self._fresh = bytearray(len(plan.clients))
        self._taken = [*range(len(plan.clients))]

    def take(self, client: int) -> Drawn:
        if not self._fresh[client]:
            self._draw(np.array(self._taken))
            self._taken.clear()
        self._fresh[client] = 0
        self._taken.append(client)
        self._nth[client] += 1
        return Drawn._make(self._next[client].tolist())

    def _draw(self, clients: Ints) -> None:
        fleet, failures, nth = self._fleet, self._fleet.failures, self._nth[clients]
        rows = np.empty((len(clients), len(Drawn._fields)))
        rows[:, 0], rows[:, 2:] = nth, (1.0, np.inf, np.inf)
        # A slower clock draws the same power for longer.
        rows[:, 1] = self._slowdown[clients] * jitters(fleet, self._root, self._exchange, clients, nth)
        if failures.corrupt:
            (uniform,) = self._uniforms("corrupt", clients, nth, 1)
            rows[:, 2] = 1 + np.floor(np.log(uniform) / np.log(failures.corrupt))
        if failures.crash:
            whether, when = self._uniforms("crash", clients, nth, 2)
            rows[:, 3] = np.where(whether < failures.crash, when, np.inf)
        if failures.crash_per_hour:
            (uniform,) = self._uniforms("crash per hour", clients, nth, 1)
            rows[:, 4] = -np.log(uniform) * _HOUR_S / failures.crash_per_hour
        self._next[clients] = rows
        for client in clients.tolist():
            self._fresh[client] = 1

    def _uniforms(self, purpose: str, clients: Ints, nth: Ints, count: int) -> Floats:
        return uniforms(derive(self._root, purpose, exchange=self._exchange), clients, nth, count=count)
