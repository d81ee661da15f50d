"""The median link, device and work of a fleet, as each kind of client would find them.

Links are ordered by the time that they take for the kind's own payloads, devices (with their number types) by
that for its own work, and work by its time on the kind's own device, each summed over the method's exchanges.
The median is that of the client in the middle of all that were admitted; of an even number, of the quicker
one of the two in the middle. Work is the steps that follow from a client's samples; only clients with the
same model are compared in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

import numpy as np

from edgefl.core.arrays import Floats
from edgefl.core.cost import Cost
from edgefl.core.devices import Board, Bounds
from edgefl.core.errors import UserError
from edgefl.core.plan import Plan
from edgefl.planning.repricing import pricers_of, rows_of

# Times that differ by less, relatively, are the same.
_ROUNDING = 1e-12
_LINK = ("down_delay_s", "up_delay_s", "down_bps", "up_bps")

Changes: TypeAlias = dict[int, list[dict[str, float]]]
"""Of each kind of client that is slower than the median, columns of its ``Prices`` in each exchange then."""


class Medians:
    """The medians of a run's fleet, and what bounds its clients' work."""

    def __init__(self, plan: Plan, devices: Mapping[str, Board]) -> None:
        """Takes a plan that has its traces, and its devices by name."""
        self._prices, self._links, clients = plan.prices, plan.fleet.links, plan.clients
        self._kinds = clients.one_of_each_kind()
        self._rows = list(rows_of(self._kinds))
        self._pricers = pricers_of(devices)
        count = np.bincount(clients.kind[clients.admitted], minlength=len(self._rows))
        # The kinds that have an admitted client, and how many.
        self._here: list[int] = np.flatnonzero(count).tolist()
        self._count = count[self._here]

    def bounds(self, place: int, kind: int) -> Bounds | None:
        """The time of a kind's work in the exchange at a place, by what bounds it; None without a trace.

        Raises:
            UserError: a number that pricing needs is unknown for its device.
        """
        if not self._prices[place].traces:
            return None
        device, _, dtype = self._rows[kind]
        return self._time(place, kind, kind, (device, dtype))

    def link(self) -> Changes:
        own_names = [self._rows[kind][1] for kind in self._here]
        names, own = np.unique(own_names, return_inverse=True)
        shape = len(names), len(self._here)
        delay_s, down_bps, up_bps = (
            np.broadcast_to([[getattr(self._links[name], key)] for name in names.tolist()], shape)
            for key in ("delay_s", "down_bps", "up_bps")
        )
        there = [
            demand._replace(
                down_delay_s=np.where(demand.down_bytes > 0, delay_s, 0.0),
                up_delay_s=np.where(demand.up_bytes > 0, delay_s, 0.0),
                down_bps=down_bps,
                up_bps=up_bps,
            )
            for demand in (prices.demand(np.array(self._here)) for prices in self._prices)
        ]
        seconds = np.array([one.down_s + one.up_s for one in there]).sum(axis=0)
        return {
            self._here[row]: [{name: float(getattr(each, name)[to, row]) for name in _LINK} for each in there]
            for row, to in _slower(seconds.T, own, np.bincount(own, self._count, len(names))).items()
        }

    def device(self) -> Changes:
        rows = [(self._rows[kind][0], self._rows[kind][2]) for kind in self._here]
        boards = sorted(set(rows))
        seconds = np.array([self._seconds([(kind, board) for board in boards], kind) for kind in self._here])
        own = np.array([boards.index(row) for row in rows])
        chosen = _slower(seconds.sum(axis=2), own, np.bincount(own, self._count, len(boards)))
        return {self._here[row]: _worked(seconds[row, board]) for row, board in chosen.items()}

    def work(self) -> Changes:
        models = self._kinds.model[self._here]
        groups: dict[tuple[int, str, str], list[int]] = {}
        for row, (kind, model) in enumerate(zip(self._here, models.tolist(), strict=True)):
            device, _, dtype = self._rows[kind]
            groups.setdefault((model, device, dtype), []).append(row)
        found: Changes = {}
        for (model, *board), rows in groups.items():
            alike = np.flatnonzero(models == model)
            choices = [(self._here[one], (board[0], board[1])) for one in alike]
            seconds = self._seconds(choices, self._here[rows[0]])
            every = np.broadcast_to(seconds.sum(axis=1), (len(rows), len(alike)))
            own = np.searchsorted(alike, rows)
            for row, one in _slower(every, own, self._count[alike]).items():
                found[self._here[rows[row]]] = _worked(seconds[one])
        return found

    def _seconds(self, choices: Sequence[tuple[int, tuple[str, str]]], kind: int) -> Floats:
        """How long a kind's work takes with the steps of another, on a device: (choices, exchanges).

        NaN where nobody can price that.
        """
        found = np.full((len(choices), len(self._prices)), math.nan)
        for row, (taken, board) in enumerate(choices):
            for place in range(len(self._prices)):
                with suppress(UserError):
                    found[row, place] = self._time(place, kind, taken, board).seconds
        return found

    def _time(self, place: int, kind: int, taken: int, board: tuple[str, str]) -> Bounds:
        prices = self._prices[place]
        work = prices.traces[int(self._kinds.model[kind])].work(prices.taken[taken])
        return self._pricers(*board).time(Cost(steps=work))


def _worked(seconds: Floats) -> list[dict[str, float]]:
    return [{"work_s": one} for one in seconds.tolist()]


def _slower(seconds: Floats, own: np.ndarray, clients: np.ndarray) -> dict[int, int]:
    """The median choice of those rows whose own takes longer than it.

    Args:
        seconds: what each row's client would take with each choice, (rows, choices); NaN where unknown.
        own: each row's choice now, (rows,).
        clients: how many clients there are of each choice, (choices,).
    """
    half = (int(clients.sum()) + 1) // 2
    found = {}
    for row, each in enumerate(seconds):
        order = np.argsort(each, kind="stable")
        middle = int(order[np.searchsorted(np.cumsum(clients[order]), half)])
        if each[own[row]] > each[middle] * (1 + _ROUNDING):
            found[row] = middle
    return found
