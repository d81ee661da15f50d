"""The median link, device and work of a fleet, as each kind of client would find them.

Links are ordered by the time that they take for the kind's own payloads, devices (with their number types) by
that for its own work, and work by its time on the kind's own device, each summed over the method's exchanges.
The median is that of the client in the middle of all that were admitted; of an even number, of the quicker
one of the two in the middle. Work is the steps that follow from a client's samples; only clients with the
same model are compared in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from edgefl.core.cost import Cost
from edgefl.core.devices import Bounds
from edgefl.core.errors import UserError
from edgefl.core.plan import Floats, Prices
from edgefl.planning.recorded import Recorded
from edgefl.planning.repricing import Pricers, rows_of

# Times that differ by less, relatively, are the same.
_ROUNDING = 1e-12


class Median(NamedTuple):
    """Prices of a plan in which each kind of client that is slower than the median has the median.

    Attributes:
        prices: by exchange.
        of: by kind, what it has then; empty where it is not slower.
    """

    prices: tuple[Prices, ...]
    of: Sequence[str]


class Medians:
    """The medians of a run's fleet, and what bounds its clients' work."""

    def __init__(self, recorded: Recorded) -> None:
        """Takes what the run was planned of."""
        self._prices, self._links = recorded.plan.prices, recorded.links
        clients = recorded.plan.clients
        self._kinds = clients.one_of_each_kind()
        self._rows = list(rows_of(self._kinds))
        self._pricers = Pricers(recorded.devices)
        self._count = np.bincount(clients.kind[clients.admitted], minlength=len(self._rows))
        self._here: list[int] = np.flatnonzero(self._count).tolist()

    def bounds(self, place: int, kind: int) -> Bounds | None:
        """The time of a kind's work in the exchange at a place, by what bounds it; None without a trace.

        Raises:
            UserError: a number that pricing needs is unknown for its device.
        """
        if not self._prices[place].traces:
            return None
        device, _, dtype = self._rows[kind]
        return self._time(place, kind, kind, (device, dtype))

    def link(self) -> Median:
        """That of links."""
        names = sorted({self._rows[kind][1] for kind in self._here})
        seconds = np.zeros((len(self._here), len(names)))
        there = []
        for prices in self._prices:
            demand = prices.demand(np.array(self._here))
            for column, link in enumerate(self._links[name] for name in names):
                one = demand._replace(
                    down_delay_s=np.where(demand.down_bytes > 0, link.delay_s, 0.0),
                    up_delay_s=np.where(demand.up_bytes > 0, link.delay_s, 0.0),
                    down_bps=np.full(len(self._here), link.down_bps),
                    up_bps=np.full(len(self._here), link.up_bps),
                )
                there.append(one)
                seconds[:, column] += one.down_s + one.up_s
        own = np.array([names.index(self._rows[kind][1]) for kind in self._here])
        chosen = _slower(seconds, own, self._count[self._here])
        changed: list[Prices] = []
        for place, prices in enumerate(self._prices):
            columns = {
                name: getattr(prices, name).copy()
                for name in ("down_delay_s", "up_delay_s", "down_bps", "up_bps")
            }
            for row, other in chosen.items():
                for name, values in columns.items():
                    values[self._here[row]] = getattr(there[place * len(names) + other], name)[row]
            changed.append(replace(prices, **columns))
        return Median(tuple(changed), self._named({row: names[other] for row, other in chosen.items()}))

    def device(self) -> Median:
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
        chosen = _slower(seconds.sum(axis=0), own, self._count[self._here])
        mixed = len({dtype for _, dtype in boards}) > 1
        names = [f"{device} in {dtype}" if mixed else device for device, dtype in boards]
        named = self._named({row: names[board] for row, board in chosen.items()})
        return Median(self._worked({row: seconds[:, row, board] for row, board in chosen.items()}), named)

    def work(self) -> Median:
        """That of work."""
        models = self._kinds.model[self._here]
        groups: dict[tuple[int, str, str], list[int]] = {}
        for row, (kind, model) in enumerate(zip(self._here, models.tolist(), strict=True)):
            device, _, dtype = self._rows[kind]
            groups.setdefault((model, device, dtype), []).append(row)
        taken: dict[int, Floats] = {}
        named: dict[int, str] = {}
        for (model, *board), rows in groups.items():
            alike = np.flatnonzero(models == model)
            seconds = np.array(
                [
                    [self._seconds(place, rows[0], self._here[one], (board[0], board[1])) for one in alike]
                    for place in range(len(self._prices))
                ]
            )
            every = np.broadcast_to(seconds.sum(axis=0), (len(rows), len(alike)))
            own = np.searchsorted(alike, rows)
            for row, one in _slower(every, own, self._count[self._here][alike], by_row=False).items():
                taken[rows[row]] = seconds[:, one]
                named[rows[row]] = f"{self._kinds.samples[self._here[alike[one]]]:,} samples"
        return Median(self._worked(taken), self._named(named))

    def _worked(self, work_s: dict[int, Floats]) -> tuple[Prices, ...]:
        """The prices with other seconds of work, by exchange, of some of the kinds that are here."""
        changed = []
        for place, prices in enumerate(self._prices):
            values = prices.work_s.copy()
            for row, seconds in work_s.items():
                values[self._here[row]] = seconds[place]
            changed.append(replace(prices, work_s=values))
        return tuple(changed)

    def _named(self, names: dict[int, str]) -> list[str]:
        """Texts by kind, of those of the kinds that are here."""
        by_kind = {self._here[row]: name for row, name in names.items()}
        return [by_kind.get(kind, "") for kind in range(len(self._rows))]

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
