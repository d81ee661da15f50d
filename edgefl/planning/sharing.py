"""What an exchange costs the capacities that clients share: the server's link, and cells.

Those that take part are clients of all links and cells in proportion, and each has the mean payload of the
models. Nothing is simulated: bytes over a rate is the least time in which all are through, in whatever order
they are sent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from edgefl.core.corners import Interval
from edgefl.core.dealing import dealt
from edgefl.core.fleet import Cell, Fleet
from edgefl.core.link import Link
from edgefl.core.link_traces import Way
from edgefl.core.max_min import Uses, max_min
from edgefl.core.scenario import Scenario
from edgefl.planning.limits import asked_at_once

# Of a rate: a difference below it is rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class SharedLink:
    """What an exchange costs a capacity that clients share.

    Attributes:
        exchange: its name.
        capacity: "server.downlink" or "server.uplink"; or "cell NAME, down" or "up".
        bps: its rate.
        clients: how many clients' transfers share it: those that are asked at a time, or those of a cell.
        payload_bytes: of each; the mean over models.
        at_least_s: until all of their payloads are through, at the full rate.
        alone_s: what a transfer takes alone on its client's own link, over clients.
        each_bps: what a client gets if all of them transfer at once, max-min fairly, over clients.
        is_full: whether they fill it then.
    """

    exchange: str
    capacity: str
    bps: float
    clients: int
    payload_bytes: float
    at_least_s: float
    alone_s: Interval
    each_bps: Interval
    is_full: bool


class Payload(NamedTuple):
    """What an exchange transfers.

    Attributes:
        exchange: its name.
        everyone: whether all clients take part.
        down, up: the bytes of each model's payload, after codecs.
    """

    exchange: str
    everyone: bool
    down: Sequence[int]
    up: Sequence[int]


def shared_links(
    scenario: Scenario, policy: Any, fleet: Fleet, links: Mapping[str, Link], payloads: Sequence[Payload]
) -> list[SharedLink] | None:
    """What each exchange costs what clients share; None where nothing is shared.

    Args:
        scenario: the run's.
        policy: its policy's parameters.
        fleet: its fleet.
        links: those of its members, by name.
        payloads: by exchange.
    """
    rates: dict[Way, float | None] = {"down": scenario.server.downlink, "up": scenario.server.uplink}
    if not fleet.cells and not any(rates.values()):
        return None
    groups, found = _groups(fleet, scenario), list[SharedLink]()
    for payload in payloads:
        clients = scenario.task.clients
        if not payload.everyone:
            clients = min(clients, asked_at_once(scenario.server, policy) or clients)
        for way, rate in rates.items():
            sharing = _Sharing(fleet, groups, links, payload, way)
            if rate is not None:
                found += sharing.of_server(rate, clients)
            found += sharing.of_cells()
    return found


class _Group(NamedTuple):
    """Clients with the same link, in cells of the same name.

    Attributes:
        link: its name.
        cell: the cells'; None for none.
        clients: how many they are.
    """

    link: str
    cell: str | None
    clients: int


def _groups(fleet: Fleet, scenario: Scenario) -> list[_Group]:
    """The groups of a scenario's clients."""
    found, cells = dealt(fleet, scenario.task.clients, scenario.seed), [None, *fleet.cells]
    cell = np.array([cells.index(member.cell) for member in fleet.members])[found.member]
    pairs, counts = np.unique(np.stack([found.link.place, cell]), axis=1, return_counts=True)
    return [
        _Group(found.link.names[link], cells[cell], count)
        for link, cell, count in zip(*pairs.tolist(), counts.tolist(), strict=True)
    ]


class _Sharing:
    """An exchange's transfers one way."""

    def __init__(
        self, fleet: Fleet, groups: Sequence[_Group], links: Mapping[str, Link], payload: Payload, way: Way
    ) -> None:
        self._cells, self._cell = fleet.cells, [group.cell for group in groups]
        self._clients = np.array([group.clients for group in groups])
        own = [links[group.link] for group in groups]
        self._delay_s = np.array([link.delay_s for link in own])
        self._own_bps = np.array([link.down_bps if way == "down" else link.up_bps for link in own])
        self._exchange, self._way = payload.exchange, way
        self._bytes = np.array(payload.down if way == "down" else payload.up)

    def of_server(self, rate: float, asked: int) -> Iterator[SharedLink]:
        """What the server's link, of a rate, costs if so many of the clients are asked."""
        flows = asked * self._clients / self._clients.sum()
        cells = {name: self._rate(cell) for name, cell in self._cells.items()}
        # As many of each cell transfer as there are clients asked, so that cells of a name act as one.
        count = {name: max(1, -(-self._in(name) // cell.clients)) for name, cell in self._cells.items()}
        capacities = [rate, *(cells[name] * count[name] for name in cells)]
        at = {name: place for place, name in enumerate(cells, start=1)}
        uses = [(flow, 0) for flow in range(len(flows))]
        uses += [(flow, at[name]) for flow, name in enumerate(self._cell) if name is not None]
        caps = [
            min(own, cells.get(name or "", math.inf))
            for own, name in zip(self._own_bps.tolist(), self._cell, strict=True)
        ]
        name = f"server.{self._way}link"
        yield from self._shared(name, rate, asked, capacities, uses, np.array(caps), flows)

    def of_cells(self) -> Iterator[SharedLink]:
        """What each cell costs if all of its clients take part."""
        for name, cell in self._cells.items():
            inside = self._in(name)
            if not inside:
                continue
            clients = min(cell.clients, inside)
            mine = np.array([one == name for one in self._cell])
            flows = clients * np.where(mine, self._clients, 0) / inside
            uses = [(flow, 0) for flow in np.flatnonzero(mine).tolist()]
            rate = self._rate(cell)
            title = f"cell {name}, {self._way}"
            yield from self._shared(title, rate, clients, [rate], uses, self._own_bps, flows)

    def _rate(self, cell: Cell) -> float:
        return cell.down.known if self._way == "down" else cell.up.known

    def _in(self, name: str) -> int:
        """How many clients are in cells of a name."""
        each = zip(self._clients.tolist(), self._cell, strict=True)
        return sum(clients for clients, cell in each if cell == name)

    def _shared(
        self,
        name: str,
        rate: float,
        clients: int,
        capacities: Sequence[float],
        uses: Sequence[tuple[int, int]],
        caps: np.ndarray,
        flows: np.ndarray,
    ) -> Iterator[SharedLink]:
        """A capacity's record, given how many flows there are of each group, (groups,)."""
        there = flows > 0
        if not self._bytes.any():
            return
        # Of a group's flows, all alike, the sum is a flow whose level is theirs.
        counts = np.where(there, flows, 1.0)
        flow, resource = np.array(uses).T
        rates = max_min(capacities, Uses(flow, resource, np.ones(len(uses))), caps * counts, 1 / counts)
        each_bps = (rates / counts)[there]
        alone_s = (self._delay_s[there, None] + 8 * self._bytes / self._own_bps[there, None])[
            :, self._bytes > 0
        ]
        mean_bytes = float(self._bytes.mean())
        yield SharedLink(
            exchange=self._exchange,
            capacity=name,
            bps=rate,
            clients=clients,
            payload_bytes=mean_bytes,
            at_least_s=8 * clients * mean_bytes / rate,
            alone_s=Interval(float(alone_s.min()), float(alone_s.max())),
            each_bps=Interval(float(each_bps.min()), float(each_bps.max())),
            is_full=bool(rates[there].sum() >= rate * (1 - _ROUNDING)),
        )
