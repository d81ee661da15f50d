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
from edgefl.core.draws import Floats
from edgefl.core.fleet import Cell, Fleet
from edgefl.core.link import Link
from edgefl.core.link_traces import Way
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
    groups = _Groups.of(fleet, scenario, links)
    found = []
    for payload in payloads:
        clients = scenario.task.clients
        if not payload.everyone:
            clients = min(clients, asked_at_once(scenario.server, policy) or clients)
        for way, rate in rates.items():
            if any(payload.down if way == "down" else payload.up):
                found += [] if rate is None else [groups.of_server(payload, way, rate, clients)]
                found += groups.of_cells(payload, way)
    return found


@dataclass(frozen=True)
class _Groups:
    """Clients in groups, each with one link in cells of one name.

    Attributes:
        cells: the fleet's.
        cell: the name of each group's cells; None for none.
        link: each group's link.
        clients: how many each has (groups,).
    """

    cells: Mapping[str, Cell]
    cell: Sequence[str | None]
    link: Sequence[Link]
    clients: Floats

    @classmethod
    def of(cls, fleet: Fleet, scenario: Scenario, links: Mapping[str, Link]) -> _Groups:
        """The groups of a scenario's clients."""
        found, names = dealt(fleet, scenario.task.clients, scenario.seed), [None, *fleet.cells]
        cell = np.array([names.index(member.cell) for member in fleet.members])[found.member]
        pairs, counts = np.unique(np.stack([found.link.place, cell]), axis=1, return_counts=True)
        link, cells = pairs.tolist()
        own = [links[found.link.names[place]] for place in link]
        return cls(fleet.cells, [names[place] for place in cells], own, counts.astype(float))

    def of_server(self, payload: Payload, way: Way, rate: float, asked: int) -> SharedLink:
        """What the server's link, of a rate, costs if so many of the clients are asked."""
        flows, caps = asked * self.clients / self.clients.sum(), self._own_bps(way)
        for name, cell in self.cells.items():
            mine, own = self._in(name), _rate(cell, way)
            if mine.any():
                # As many transfer in each, so that cells of a name act as one.
                count = -(-int(self.clients[mine].sum()) // cell.clients)
                caps[mine] = fair(own * count, flows[mine], np.minimum(caps[mine], own))
        return self._shared(payload, way, f"server.{way}link", rate, asked, flows, caps)

    def of_cells(self, payload: Payload, way: Way) -> Iterator[SharedLink]:
        """What each cell costs if all of its clients take part."""
        for name, cell in self.cells.items():
            inside = np.where(self._in(name), self.clients, 0.0)
            if inside.any():
                clients = min(cell.clients, int(inside.sum()))
                flows, caps = clients * inside / inside.sum(), self._own_bps(way)
                title = f"cell {name}, {way}"
                yield self._shared(payload, way, title, _rate(cell, way), clients, flows, caps)

    def _in(self, name: str) -> Any:
        return np.array([one == name for one in self.cell])

    def _own_bps(self, way: Way) -> Floats:
        return np.array([link.down_bps if way == "down" else link.up_bps for link in self.link])

    def _shared(
        self, payload: Payload, way: Way, name: str, rate: float, clients: int, flows: Floats, caps: Floats
    ) -> SharedLink:
        """A capacity's record, given how many transfers there are of each group, and the most of each."""
        there = flows > 0
        sizes = np.array(payload.down if way == "down" else payload.up)
        each_bps = fair(rate, flows[there], caps[there])
        delay_s = np.array([link.delay_s for link in self.link])[there, None]
        alone_s = delay_s + 8 * sizes[sizes > 0] / self._own_bps(way)[there, None]
        mean_bytes = float(sizes.mean())
        return SharedLink(
            exchange=payload.exchange,
            capacity=name,
            bps=rate,
            clients=clients,
            payload_bytes=mean_bytes,
            at_least_s=8 * clients * mean_bytes / rate,
            alone_s=Interval(float(alone_s.min()), float(alone_s.max())),
            each_bps=Interval(float(each_bps.min()), float(each_bps.max())),
            is_full=bool((flows[there] * each_bps).sum() >= rate * (1 - _ROUNDING)),
        )


def _rate(cell: Cell, way: Way) -> float:
    return cell.down.known if way == "down" else cell.up.known


def fair(rate: float, flows: Floats, caps: Floats) -> Floats:
    """Max-min fair rates: of so many flows each, all have one rate, or their cap where that is less."""
    order = np.argsort(caps)
    count, most = flows[order], caps[order]
    left = rate - np.concatenate([[0.0], np.cumsum(count * most)[:-1]])
    levels = left / np.cumsum(count[::-1])[::-1]
    return np.minimum(caps, max(levels[levels <= most], default=math.inf))
