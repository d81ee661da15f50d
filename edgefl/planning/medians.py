"""The median link, device and work of a fleet, as each kind of client would find them.

Links are ordered by the time that they take for the kind's own payloads, devices (with their number types) by
that for its own work, and work by its time on the kind's own device, each summed over the method's exchanges.
The median is that of the client in the middle of all that were admitted; of an even number, of the quicker
one of the two in the middle. Work is the steps that follow from a client's samples; only clients with the
same model are compared in it.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from edgefl.core.cost import Cost
from edgefl.core.devices import Bounds
from edgefl.core.errors import UserError
from edgefl.core.plan import Floats
from edgefl.planning.recorded import Recorded
from edgefl.planning.repricing import Pricers, rows_of

# Times that differ by less, relatively, are the same.
_ROUNDING = 1e-12
_LINK = ("down_delay_s", "up_delay_s", "down_bps", "up_bps")

Changes: TypeAlias = dict[int, list[dict[str, float]]]
"""Of each kind of client that is slower than the median, columns of its ``Prices`` in each exchange then."""


class Medians:
    """The medians of a run's fleet, and what bounds its clients' work."""

    def __init__(self, recorded: Recorded) -> None:
        """Takes what the run was planned of."""
        self._prices, self._links = recorded.plan.prices, recorded.links
        clients = recorded.plan.clients
        self._kinds = clients.one_of_each_kind()
        self._rows = list(rows_of(self._kinds))
        self._pricers = Pricers(recorded.devices)
        count = np.bincount(clients.kind[clients.admitted], minlength=len(self._rows))
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
        """That of links."""
        names = sorted({self._rows[kind][1] for kind in self._here})
        there = []
        for prices in self._prices:
            demand, ones = prices.demand(np.array(self._here)), np.ones(len(self._here))
            there.append(
                [
                    demand._replace(
                        down_delay_s=np.where(demand.down_bytes > 0, link.delay_s, 0.0),
                        up_delay_s=np.where(demand.up_bytes > 0, link.delay_s, 0.0),
                        down_bps=link.down_bps * ones,
                        up_bps=link.up_bps * ones,
                    )
                    for link in (self._links[name] for name in names)
                ]
            )
        seconds = np.array([[one.down_s + one.up_s for one in each] for each in there])
        own = np.array([names.index(self._rows[kind][1]) for kind in self._here])
        chosen = _slower(seconds.sum(axis=0).T, own, self._count)
        return {
            self._here[row]: [
                {name: float(getattr(each[other], name)[row]) for name in _LINK} for each in there
            ]
            for row, other in chosen.items()
        }

    def device(self) -> Changes:
        """That of devices."""
        rows = [(self._rows[kind][0], self._rows[kind][2]) for kind in self._here]
        boards = sorted(set(rows))
        seconds = np.array(
            [
                [[self._seconds(place, kind, kind, board) for board in boards] for kind in self._here]
                for place in range(len(self._prices))
            ]
        )
        own = np.array([boards.index(row) for row in rows])
        chosen = _slower(seconds.sum(axis=0), own, self._count)
        return {self._here[row]: _worked(seconds[:, row, board]) for row, board in chosen.items()}

    def work(self) -> Changes:
        """That of work."""
        models = self._kinds.model[self._here]
        groups: dict[tuple[int, str, str], list[int]] = {}
        for row, (kind, model) in enumerate(zip(self._here, models.tolist(), strict=True)):
            device, _, dtype = self._rows[kind]
            groups.setdefault((model, device, dtype), []).append(row)
        found: Changes = {}
        for (model, *board), rows in groups.items():
            alike = np.flatnonzero(models == model)
            kind = self._here[rows[0]]
            seconds = np.array(
                [
                    [self._seconds(place, kind, self._here[one], (board[0], board[1])) for one in alike]
                    for place in range(len(self._prices))
                ]
            )
            every = np.broadcast_to(seconds.sum(axis=0), (len(rows), len(alike)))
            own = np.searchsorted(alike, rows)
            for row, one in _slower(every, own, self._count[alike], by_row=False).items():
                found[self._here[rows[row]]] = _worked(seconds[:, one])
        return found

    def _seconds(self, place: int, kind: int, taken: int, board: tuple[str, str]) -> float:
        """How long a kind's work with the steps of another takes; NaN where nobody can price that."""
        try:
            return self._time(place, kind, taken, board).seconds
        except UserError:
            return math.nan

    def _time(self, place: int, kind: int, taken: int, board: tuple[str, str]) -> Bounds:
        prices = self._prices[place]
        work = prices.traces[int(self._kinds.model[kind])].work(prices.taken[taken])
        return self._pricers.of(*board).time(Cost(steps=work))


def _worked(seconds: Floats) -> list[dict[str, float]]:
    return [{"work_s": one} for one in seconds.tolist()]


def _slower(seconds: Floats, own: np.ndarray, clients: np.ndarray, *, by_row: bool = True) -> dict[int, int]:
    """The median choice of those rows whose own takes longer than it.

    Args:
        seconds: what each row's client would take with each choice, (rows, choices); NaN where unknown.
        own: each row's choice now, (rows,).
        clients: how many clients there are of each row, or of each choice, as ``by_row`` says.
        by_row: see ``clients``.
    """
    weights = np.bincount(own, weights=clients, minlength=seconds.shape[1]) if by_row else clients
    half = (int(weights.sum()) + 1) // 2
    found = {}
    for row, each in enumerate(seconds):
        order = np.argsort(each, kind="stable")
        middle = int(order[np.searchsorted(np.cumsum(weights[order]), half)])
        if each[own[row]] > each[middle] * (1 + _ROUNDING):
            found[row] = middle
    return found
